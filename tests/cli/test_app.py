from __future__ import annotations

import os
import subprocess
import sys
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from slimgrad.cli import app
from slimgrad.core.errors import ConfigError, DataError, FallbackWarning, WorkerError

Command = Callable[..., Any]
SRC = str(Path(app.__file__).resolve().parents[2])


def _refused(outcome: Any, *facts: str, code: int = 2) -> None:
    """Nothing on stdout, one line on stderr that holds ``facts``."""
    assert outcome.code == code
    assert outcome.out == ""
    lines = outcome.err.splitlines()
    assert len(lines) == 1
    assert lines[0].startswith("slimgrad: ")
    for fact in facts:
        assert fact in lines[0]


@pytest.mark.parametrize("command", [(), ("train",), ("compare",), ("doctor",), ("theory",)])
def test_help_shows_examples(slimgrad_command: Command, command: tuple[str, ...]) -> None:
    outcome = slimgrad_command(*command, "--help")
    assert (outcome.code, outcome.err) == (0, "")
    assert "Examples" in outcome.out
    assert f"slimgrad {' '.join(command)}".strip() in outcome.out.split("Examples")[1]


def test_version(slimgrad_command: Command) -> None:
    outcome = slimgrad_command("--version")
    assert (outcome.code, outcome.out.strip()) == (0, app.version())


def test_version_of_an_installation_that_is_none(monkeypatch: pytest.MonkeyPatch) -> None:
    def missing(name: str) -> str:
        raise app.importlib.metadata.PackageNotFoundError(name)

    monkeypatch.setattr(app.importlib.metadata, "version", missing)
    assert "not installed" in app.version()


def test_unknown_names_are_answered_with_the_nearest(slimgrad_command: Command) -> None:
    _refused(slimgrad_command("comapre"), "comapre", 'Did you mean "compare"?')
    _refused(slimgrad_command("train", "--epoch", "3"), "--epoch", "--epochs", "train --help")
    _refused(slimgrad_command("train", "--epochs", "many"), "--epochs", "many")
    _refused(slimgrad_command("train", "--epochs"), "--epochs")
    _refused(slimgrad_command("train", "digits"), "digits")


@pytest.mark.usefixtures("engine")
def test_a_wrong_recipe_is_answered_with_the_nearest(slimgrad_command: Command) -> None:
    outcome = slimgrad_command("compare", "--recipe", "digit")
    _refused(outcome, "unknown recipe 'digit': did you mean 'digits'?")


@pytest.mark.parametrize(
    ("error", "code"),
    [
        (ConfigError("bits = 11: must be 2 to 8"), 2),
        (DataError("a file\nis gone"), 2),
        (WorkerError("rank 1 failed"), 2),
        (PermissionError(13, "Permission denied", "demo"), 2),
        (ModuleNotFoundError("No module named 'mlxtend'", name="mlxtend"), 2),
        (ZeroDivisionError("division by zero"), 1),
        (KeyboardInterrupt(), 130),
    ],
)
def test_errors_are_one_line(
    slimgrad_command: Command, engine: Any, error: BaseException, code: int
) -> None:
    def fail(config: Any) -> None:
        raise error

    engine.act = fail
    outcome = slimgrad_command("compare", "--recipe", "digits", "--out", "demo")
    _refused(outcome, code=code)
    assert not Path("demo").exists()
    told = slimgrad_command("compare", "--recipe", "digits", "--out", "demo", debug=True)
    assert told.code == code
    assert "Traceback" in told.err
    assert told.err.splitlines()[-1] == outcome.err.strip()


def test_what_errors_say(slimgrad_command: Command, engine: Any) -> None:
    for error, fact in (
        (DataError("a file\n is gone"), "a file is gone"),
        (OSError(28, "No space left", "demo/records.jsonl"), "slimgrad: demo/records.jsonl: No sp"),
        (OSError(28, "No space left"), "slimgrad: No space left"),
        (OSError("timed out"), "slimgrad: timed out"),
        (ModuleNotFoundError("", name="mlxtend"), "needs the package 'mlxtend'"),
        (ZeroDivisionError("by zero"), "--debug: ZeroDivisionError: by zero"),
        (KeyboardInterrupt(), "interrupted"),
    ):

        def fail(config: Any, error: BaseException = error) -> None:
            raise error

        engine.act = fail
        assert fact in slimgrad_command("compare", "--recipe", "digits").err


def test_warnings_of_slimgrad_are_one_line(slimgrad_command: Command, engine: Any) -> None:
    def warn(config: Any) -> None:
        warnings.warn("plain torch is\nused instead", FallbackWarning, stacklevel=1)
        warnings.warn("something of another package", UserWarning, stacklevel=1)

    engine.act = warn
    before = warnings.showwarning
    with pytest.warns(UserWarning, match="something of another package"):
        outcome = slimgrad_command("compare", "--recipe", "digits", "--out", "demo")
    assert outcome.code == 0
    assert outcome.err == "slimgrad: warning: plain torch is used instead\n"
    assert warnings.showwarning is before


def _process(*tokens: str, code: str = "", **options: Any) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-c", code] if code else [sys.executable, "-m", "slimgrad"]
    environment = {**os.environ, "PYTHONPATH": SRC, **options}
    return subprocess.run(
        [*command, *tokens], capture_output=True, text=True, timeout=100, env=environment
    )


def test_the_process_ends_with_the_exit_code_and_debug_is_no_option() -> None:
    plain = _process("train", "--bits", "3")
    assert (plain.returncode, plain.stdout) == (2, "")
    assert plain.stderr.startswith("slimgrad: --bits")
    assert plain.stderr.count("\n") == 1
    told = _process("train", "--bits", "3", "--debug")
    assert told.returncode == 2
    assert "Traceback" in told.stderr


@pytest.mark.parametrize("command", [["train"], ["theory"], ["theory", "steps"]])
def test_help_loads_nothing_heavy(command: list[str]) -> None:
    code = (
        f"import sys; from slimgrad.cli.app import execute; execute([*{command}, '--help']);"
        "heavy = {'torch', 'matplotlib', 'scipy', 'pydantic', 'jinja2'} & set(sys.modules);"
        "sys.exit(f'loaded: {heavy}' if heavy else 0)"
    )
    found = _process(code=code)
    assert (found.returncode, found.stderr) == (0, "")


def test_a_narrow_encoding_does_not_stop_the_command() -> None:
    code = "from slimgrad.cli import app; app.execute(['--version']); print('± −')"
    found = _process(code=code, PYTHONIOENCODING="ascii")
    assert found.returncode == 0
    assert "? ?" in found.stdout


def test_a_reader_that_leaves_is_no_error() -> None:
    code = (
        "import sys; from slimgrad.cli.app import execute\n"
        "import slimgrad.cli.app as app\n"
        "def version():\n    raise BrokenPipeError\n"
        "app.version = version\n"
        "sys.exit(execute(['--version']))"
    )
    found = _process(code=code)
    assert (found.returncode, found.stdout, found.stderr) == (1, "", "")
