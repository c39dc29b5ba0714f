from __future__ import annotations

import json
import sys
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest
import sample_records as samples

import slimgrad.experiments
from slimgrad.cli.app import execute
from slimgrad.core.errors import ConfigError
from slimgrad.core.registry import unknown_name_message
from slimgrad.experiments.report import html


@dataclass(frozen=True)
class StubMethod:
    name: str

    @property
    def is_exact(self) -> bool:
        return self.name == "exact"


@dataclass(frozen=True)
class StubCompareConfig:
    """Takes what the command hands over, with a check to refuse something by."""

    methods: list[Any]
    seeds: list[int] = field(default_factory=lambda: [0, 1])
    out: Path = Path("runs/latest")
    resume: bool = False
    epochs: int = 4
    workers: int = 1
    data: Any = "digits"

    def __post_init__(self) -> None:
        if self.epochs < 1:
            raise ConfigError(f"epochs = {self.epochs}: must be greater than or equal to 1")
        named = [StubMethod(m) if isinstance(m, str) else m for m in self.methods]
        object.__setattr__(self, "methods", named)

    def replace(self, **changes: Any) -> StubCompareConfig:
        return replace(self, **changes)


class StubTrainConfig:
    def __init__(self, **settings: Any) -> None:
        self.settings = settings
        self.out = Path(settings.get("out", "runs/latest"))
        self.resume = settings.get("resume", False)


@dataclass
class Engine:
    """What stands in for training: does what ``act`` says, then writes sample records.

    ``records`` replaces the sample records.
    """

    act: Callable[[Any], None] | None = None
    records: list[dict[str, Any]] | None = None
    configs: list[Any] = field(default_factory=list)

    def compare(self, config: StubCompareConfig) -> None:
        names = tuple(method.name for method in config.methods)
        self._run(config, samples.records(names, tuple(config.seeds)))

    def train(self, config: StubTrainConfig) -> None:
        self._run(config, samples.records(("topone",), (1,)))

    def _run(self, config: Any, records: list[dict[str, Any]]) -> None:
        self.configs.append(config)
        if self.act is not None:
            self.act(config)
        with (Path(config.out) / "records.jsonl").open("a") as file:
            file.writelines(json.dumps(record) + "\n" for record in self.records or records)


@pytest.fixture
def engine(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Engine:
    """Replaces configuration and training, and makes ``tmp_path`` the working folder.

    Figures are left out of reports: they are slow to draw, and have tests of their own.
    """
    found = Engine()
    monkeypatch.setattr(html, "all_figures", lambda comparison, summary: [])
    (tmp_path / "digits.toml").write_text(
        'epochs = 3\nmethods = ["exact", "topone", "nuqsgd"]\nseeds = [1, 2, 3]\n'
    )

    def recipe_path(name: str) -> Path:
        if name != "digits":
            raise ConfigError(unknown_name_message("recipe", name, ["digits"]))
        return tmp_path / "digits.toml"

    parts = {
        "config": {
            "CompareConfig": StubCompareConfig,
            "TrainConfig": StubTrainConfig,
            "recipe_path": recipe_path,
        },
        "compare": {"compare": found.compare},
        "train": {"train": found.train},
    }
    for name, contents in parts.items():
        module = ModuleType(f"slimgrad.experiments.{name}")
        vars(module).update(contents)
        monkeypatch.setitem(sys.modules, module.__name__, module)
        monkeypatch.setattr(slimgrad.experiments, name, module, raising=False)
    monkeypatch.chdir(tmp_path)
    return found


@dataclass
class Outcome:
    code: int
    out: str
    err: str


@pytest.fixture
def slimgrad_command(capsys: pytest.CaptureFixture[str]) -> Callable[..., Outcome]:
    """Runs the command line inside this process."""

    def run(*tokens: str, debug: bool = False) -> Outcome:
        capsys.readouterr()
        try:
            code = execute(tokens, debug=debug)
        except SystemExit as leaving:
            code = int(leaving.code or 0)
        printed = capsys.readouterr()
        return Outcome(code, printed.out, printed.err)

    return run
