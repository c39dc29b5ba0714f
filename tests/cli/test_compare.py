from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import sample_records as samples

from slimgrad.cli.compare import choose

Command = Callable[..., Any]


def test_the_main_job(slimgrad_command: Command, engine: Any) -> None:
    outcome = slimgrad_command("compare", "--recipe", "digits", "--out", "demo")
    assert (outcome.code, outcome.err) == (0, "")
    assert sorted(path.name for path in Path("demo").iterdir()) == [
        *("records.jsonl", "report.html", "summary.json"),
    ]
    assert "96.83 ± 0.36" in outcome.out
    assert outcome.out.splitlines()[-1] == f"report: {Path('demo', 'report.html')}"
    assert "[9/9]" in outcome.out
    assert json.loads(Path("demo/summary.json").read_text())["reference"] == "exact"
    assert Path("demo/report.html").read_text().startswith("<!DOCTYPE html>")


def test_options_reach_the_comparison(slimgrad_command: Command, engine: Any) -> None:
    outcome = slimgrad_command(
        *("compare", "--recipe", "digits", "--methods", "nuqsgd", "--seeds", "4,6-7"),
        *("--epochs", "9", "--workers", "2", "--data-dir", "images", "--out", "demo"),
    )
    assert outcome.code == 0
    (config,) = engine.configs
    assert [method.name for method in config.methods] == ["exact", "nuqsgd"]
    assert (config.seeds, config.epochs, config.workers) == ([4, 6, 7], 9, 2)
    assert config.data == {"path": Path("images")}


def test_a_comparison_of_ones_own(slimgrad_command: Command, engine: Any) -> None:
    Path("mine.toml").write_text('methods = ["exact", "nuqsgd"]\nout = "mine"\nseeds = [1, 2]\n')
    outcome = slimgrad_command("compare", "--config", "mine.toml", "--methods", "exact,nuqsgd")
    assert outcome.code == 0
    assert Path("mine/report.html").exists()


def test_a_name_with_a_comma_is_one_name() -> None:
    assert choose(["exact", "a, b", "a", "b"], "a, b") == {"a, b"}
    assert choose(["exact", "a", "b"], "a, b") == {"a", "b"}


def test_a_method_without_any_result_shows_in_the_exit_code(
    slimgrad_command: Command, engine: Any
) -> None:
    engine.records = [samples.session(("exact", "topone"), (1,))]
    engine.records += samples.run_records("exact", 1)
    outcome = slimgrad_command("compare", "--recipe", "digits", "--out", "demo")
    assert outcome.code == 1
    assert "Attention: topone, seed 1: never started." in outcome.out


def test_json_is_all_there_is_on_stdout(slimgrad_command: Command, engine: Any) -> None:
    outcome = slimgrad_command("compare", "--recipe", "digits", "--out", "demo", "--json")
    assert outcome.code == 0
    tree = json.loads(outcome.out)
    assert tree["out"] == "demo"
    assert Path(tree["report"]).exists()
    assert tree["summary"] == json.loads(Path("demo/summary.json").read_text())
    assert "finished" in outcome.err


@pytest.mark.parametrize(
    ("options", "fact"),
    [
        (("--recipe", "digits", "--methods", "nuqsdg"), "did you mean 'nuqsgd'?"),
        (("--recipe", "digits", "--methods", " ,"), "allowed: exact, topone, nuqsgd"),
        (("--recipe", "digits", "--seeds", "x"), "write seeds as"),
        (("--recipe", "digits", "--epochs", "0"), "must be greater than or equal to 1"),
        (("--recipe", "digits", "--config", "mine.toml"), "name one comparison"),
        ((), "name one comparison"),
        (("--config", "absent.toml"), "absent.toml"),
    ],
)
def test_wrong_input_is_refused_before_anything_is_written(
    slimgrad_command: Command, engine: Any, options: tuple[str, ...], fact: str
) -> None:
    outcome = slimgrad_command("compare", "--out", "demo", *options)
    assert (outcome.code, outcome.out) == (2, "")
    assert outcome.err.count("\n") == 1
    assert fact in outcome.err
    assert engine.configs == []
    assert not Path("demo").exists()


def test_a_second_comparison_just_works(slimgrad_command: Command, engine: Any) -> None:
    command = ("compare", "--recipe", "digits", "--out", "demo")
    assert slimgrad_command(*command).code == 0

    def set_aside(config: Any) -> None:
        Path("demo/earlier-1").mkdir()
        Path("demo/records.jsonl").rename("demo/earlier-1/records.jsonl")

    engine.act = set_aside
    outcome = slimgrad_command(*command, "--seeds", "1,2")
    assert outcome.code == 0
    assert "[6/6]" in outcome.out
    assert "/9]" not in outcome.out


def test_a_failed_comparison_keeps_the_records_of_finished_runs(
    slimgrad_command: Command, engine: Any
) -> None:
    def die_after_writing(config: Any) -> None:
        (Path(config.out) / "records.jsonl").write_text("")
        raise RuntimeError("lost")

    engine.act = die_after_writing
    assert slimgrad_command("compare", "--recipe", "digits", "--out", "demo").code == 1
    assert [path.name for path in Path("demo").iterdir()] == ["records.jsonl"]


def test_other_ranks_of_a_launch_print_and_write_nothing(
    slimgrad_command: Command, engine: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    Path("demo").mkdir()
    monkeypatch.setenv("WORLD_SIZE", "2")
    monkeypatch.setenv("RANK", "1")
    outcome = slimgrad_command("compare", "--recipe", "digits", "--out", "demo")
    assert (outcome.code, outcome.out, outcome.err) == (0, "", "")
    assert not Path("demo/report.html").exists()
