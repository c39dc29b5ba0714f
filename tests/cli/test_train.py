from __future__ import annotations

import json
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import sample_records as samples

from slimgrad.approx.estimators import ESTIMATORS
from slimgrad.approx.schedules import SCHEDULES
from slimgrad.cli.train import TrainOptions, settings_of
from slimgrad.comm.codecs import CODECS
from slimgrad.comm.feedback import FEEDBACKS
from slimgrad.comm.lowrank import LOW_RANK
from slimgrad.comm.quantizers import QUANTIZERS
from slimgrad.comm.sparsifiers import SPARSIFIERS
from slimgrad.experiments.data import DATASETS
from slimgrad.experiments.models import MODELS

Command = Callable[..., Any]


def test_a_run(slimgrad_command: Command, engine: Any) -> None:
    outcome = slimgrad_command("train", "--data", "digits", "--out", "first")
    assert (outcome.code, outcome.err) == (0, "")
    assert outcome.out.splitlines()[-1] == f"records: {Path('first', 'records.jsonl')}"
    assert "[1/1] topone, seed 1: finished" in outcome.out


def test_json_is_all_there_is_on_stdout(slimgrad_command: Command, engine: Any) -> None:
    outcome = slimgrad_command("train", "--out", "first", "--json")
    tree = json.loads(outcome.out)
    assert tree["out"] == "first"
    assert tree["result"]["method"] == "topone"
    assert "finished" in outcome.err


def test_numbers_that_json_cannot_hold_become_null(slimgrad_command: Command, engine: Any) -> None:
    engine.records = samples.records(("topone",), (1,))
    engine.records[-1]["final_accuracy"] = float("nan")
    outcome = slimgrad_command("train", "--out", "first", "--json")
    tree = json.loads(outcome.out, parse_constant=pytest.fail)
    assert tree["result"]["final_accuracy"] is None
    assert tree["result"]["steps"] == 300


def test_a_run_that_diverged_says_so(slimgrad_command: Command, engine: Any) -> None:
    engine.records = samples.records(("topone",), (1,))
    next(r for r in engine.records if r["kind"] == "epoch")["train_loss"] = float("inf")
    outcome = slimgrad_command("train", "--out", "first", "--json")
    assert outcome.code == 0
    assert json.loads(outcome.out)
    assert "warning: the training loss became infinite" in outcome.err
    assert "smaller --lr" in outcome.err


def test_a_run_without_a_result_is_an_error(slimgrad_command: Command, engine: Any) -> None:
    engine.records = [samples.session(("topone",), (1,))]
    outcome = slimgrad_command("train", "--out", "first")
    assert outcome.code == 2
    assert "ended without a result; its records are in first" in outcome.err


def test_other_ranks_of_a_launch_print_nothing(
    slimgrad_command: Command, engine: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    Path("first").mkdir()
    monkeypatch.setenv("WORLD_SIZE", "2")
    monkeypatch.setenv("RANK", "1")
    outcome = slimgrad_command("train", "--out", "first")
    assert (outcome.code, outcome.out, outcome.err) == (0, "", "")


def test_every_option_reaches_the_configuration(slimgrad_command: Command, engine: Any) -> None:
    outcome = slimgrad_command(
        *("train", "--data", "folders", "--data-dir", "images", "--model", "resnet20"),
        *("--epochs", "2", "--batch-size", "64", "--lr", "0.05", "--estimator", "topone"),
        *("--scale", "0.5", "--schedule", "every_nth_layer:n=4,start=2", "--quantizer", "nuqsgd"),
        *("--bits", "4", "--bucket-size", "256", "--codec", "fixed", "--workers", "2"),
        *("--values", "eden", "--feedback", "error:decay=0.9"),
        *("--seed", "7", "--out", "first", "--checkpoint-every", "50", "--resume"),
    )
    assert outcome.code == 0
    assert engine.configs[0].settings == {
        "data": {"name": "folders", "path": Path("images")},
        "model": "resnet20",
        "epochs": 2,
        "batch_size": 64,
        "optimizer": {"lr": 0.05},
        "method": {
            "name": "topone+nuqsgd+eden+error",
            "estimator": "topone:scale=0.5",
            "schedule": "every_nth_layer:n=4,start=2",
            "quantizer": "nuqsgd:bits=4,bucket_size=256",
            "codec": "fixed",
            "values": "eden",
            "feedback": "error:decay=0.9",
        },
        "workers": 2,
        "seed": 7,
        "out": Path("first"),
        "checkpoint_every": 50,
        "resume": True,
    }


def test_nothing_given_is_nothing_set() -> None:
    assert settings_of(TrainOptions()) == {}


def test_the_command_line_wins_over_the_file(tmp_path: Path) -> None:
    file = tmp_path / "run.toml"
    file.write_text(
        'epochs = 9\nseed = 5\ndata = "digits"\n'
        '[method]\nname = "mine"\nestimator = "topone"\n'
        '[method.quantizer]\nname = "nuqsgd"\nbits = 8\n'
        '[optimizer]\nname = "adam"\nlr = 1.0\n'
    )
    settings = settings_of(TrainOptions(config=file, epochs=1, lr=0.5, bits=4))
    assert (settings["epochs"], settings["seed"], settings["data"]) == (1, 5, "digits")
    assert settings["optimizer"] == {"name": "adam", "lr": 0.5}
    quantizer = {"name": "nuqsgd", "bits": 4}
    assert settings["method"] == {"name": "mine", "estimator": "topone", "quantizer": quantizer}
    renamed = settings_of(TrainOptions(config=file, quantizer="none"))
    assert renamed["method"] == {"name": "topone", "estimator": "topone"}
    with_feedback = TrainOptions(config=file, quantizer="topk", values="eden", feedback="dgc")
    assert settings_of(with_feedback)["method"]["name"] == "topone+topk+eden+dgc"


def test_none_takes_values_and_feedback_of_the_file_away(tmp_path: Path) -> None:
    file = tmp_path / "run.toml"
    file.write_text(
        '[method]\nname = "mine"\nquantizer = "topk"\nvalues = "eden"\nfeedback = "error"\n'
    )
    settings = settings_of(TrainOptions(config=file, values="none", feedback="none"))
    assert settings["method"] == {"name": "topk", "quantizer": "topk"}


def test_a_wrong_compression_is_refused_in_one_line(slimgrad_command: Command) -> None:
    for options, fact in (
        (("--quantizer", "topkk"), "did you mean 'topk'? allowed: alq, "),
        (("--quantizer", "topk", "--bits", "4"), "unknown setting of sparsifier topk 'bits'"),
        (("--quantizer", "topk", "--feedback", "err"), "allowed: dgc, error"),
        (("--values", "eden"), "has values but no quantizer"),
    ):
        outcome = slimgrad_command("train", *options, "--out", "nowhere")
        assert (outcome.code, outcome.err.count("\n")) == (2, 1)
        assert fact in outcome.err


def test_help_names_what_there_is() -> None:
    """The text is fixed, because the registries take seconds to load."""
    reducible = [name for name in ESTIMATORS if ESTIMATORS.get(name).needs_gradient]
    for option, names in (
        ("data", DATASETS),
        ("model", MODELS),
        ("estimator", reducible),
        ("schedule", SCHEDULES),
        ("quantizer", [*QUANTIZERS, *SPARSIFIERS, *LOW_RANK]),
        ("codec", CODECS),
        ("feedback", FEEDBACKS),
    ):
        assert named_in_help(option) == sorted(names)


def named_in_help(option: str) -> list[str]:
    """Names in the enumerations "a, b or c" of an option's help, settings left away."""
    entry = re.search(rf"\n        {option}: (.*?)(?=\n        \w|\n    \w|\Z)", help_text(), re.S)
    assert entry is not None
    text = re.sub(r"(?<=\w):\w+=\S*\w", "", " ".join(entry[1].split()))
    lists = re.findall(r"(?:\w+, )*\w+ or \w+", text)
    return sorted(name for found in lists for name in re.split(", | or ", found))


def help_text() -> str:
    return TrainOptions.__doc__ or ""


@pytest.mark.parametrize(
    ("option", "part"),
    [("--bits", "quantizer"), ("--bucket-size", "quantizer"), ("--scale", "estimator")],
)
def test_a_setting_without_its_part_is_refused(
    slimgrad_command: Command, engine: Any, option: str, part: str
) -> None:
    outcome = slimgrad_command("train", option, "4", "--out", "first")
    assert outcome.code == 2
    assert outcome.err == f"slimgrad: {option} is a setting of the {part}: name one with --{part}\n"
    assert not Path("first").exists()


def test_a_run_without_method_options_is_exact() -> None:
    assert settings_of(TrainOptions(estimator="exact"))["method"]["name"] == "exact"


@pytest.mark.parametrize(
    ("text", "fact"),
    [
        ('method = "topone"', "method = 'topone': must be a table of settings"),
        ('[method]\nname = "a"\nquantizer = 3', "method: quantizer = 3: must be a table"),
        ("data = 3", "data = 3: must be a table of settings"),
        ("optimizer = 3", "optimizer = 3: must be a table of settings"),
    ],
)
def test_a_file_of_the_wrong_form_is_refused_whatever_is_given_beside_it(
    slimgrad_command: Command, tmp_path: Path, text: str, fact: str
) -> None:
    (tmp_path / "run.toml").write_text(text)
    outcome = slimgrad_command(
        *("train", "--config", str(tmp_path / "run.toml"), "--out", str(tmp_path / "out")),
        *(("--bits", "4") if "quantizer" in text else ()),
        *("--data", "digits", "--lr", "0.1"),
    )
    assert outcome.code == 2
    assert fact in outcome.err
    assert outcome.err.count("\n") == 1
