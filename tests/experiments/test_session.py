"""Runs in this process: what they write, that they repeat, and that they resume."""

from __future__ import annotations

import errno
import math
import os
import warnings
from pathlib import Path
from typing import Any

import pytest
import torch

from slimgrad.core.errors import CheckpointError, ConfigError, DataError, NoEffectWarning
from slimgrad.experiments import checkpoint, records
from slimgrad.experiments.compare import compare, planned_runs
from slimgrad.experiments.config import CompareConfig, TrainConfig
from slimgrad.experiments.plan import checkpoint_path
from slimgrad.experiments.train import train

TIMES = ("elapsed_seconds", "seconds_per_step", "total_seconds", "step_seconds")


def without_times(found: list[dict[str, Any]]) -> list[dict[str, Any]]:
    return [
        {name: value for name, value in record.items() if name not in TIMES}
        for record in found
        if record["kind"] != "session"
    ]


def as_comparison(config: TrainConfig, **changes: Any) -> CompareConfig:
    shared = {
        name: getattr(config, name)
        for name in CompareConfig.model_fields
        if name in TrainConfig.model_fields
    }
    return CompareConfig(**(shared | changes))


def test_a_run_writes_its_records_and_its_final_state(tiny_config):
    config = tiny_config(progress_every=3)
    outcome = train(config)
    session, *rest = outcome.records
    assert session["command"] == "train"
    assert session["methods"] == ["exact"]
    assert session["seeds"] == [0]
    assert session["reference"] == "exact"
    assert session["config"]["epochs"] == 2
    assert session["versions"]["torch"] == torch.__version__
    assert [(r["kind"], r["step"]) for r in rest if r["kind"] != "result"] == [
        ("progress", 3),
        ("progress", 6),
        ("progress", 8),
        ("epoch", 8),
        ("progress", 9),
        ("progress", 12),
        ("progress", 15),
        ("progress", 16),
        ("epoch", 16),
    ]
    (result,) = outcome.results
    epochs = [record for record in rest if record["kind"] == "epoch"]
    assert [record["epoch"] for record in epochs] == [1, 2]
    assert result["final_accuracy"] == epochs[-1]["test_accuracy"]
    assert result["best_accuracy"] == max(record["test_accuracy"] for record in epochs)
    assert result["steps"] == 16
    assert result["bits_per_component"] is None  # one worker sends nothing
    assert result["saved_macs_share"] == 0.0
    assert 0 < result["seconds_per_step"] < result["total_seconds"]
    saved = checkpoint.load(checkpoint_path(config))
    assert saved.step == 16
    assert sorted(path.name for path in config.out.iterdir()) == ["checkpoints", "records.jsonl"]


def test_the_two_classes_are_learnt(tiny_config):
    assert train(tiny_config(epochs=4)).results[0]["final_accuracy"] == 1.0


def test_equal_configurations_give_equal_bits_and_others_do_not(tiny_config, tmp_path: Path):
    first = train(tiny_config(out=tmp_path / "a"))
    again = train(tiny_config(out=tmp_path / "b"))
    other = train(tiny_config(out=tmp_path / "c", seed=1))
    assert without_times(first.records) == without_times(again.records)
    assert first.results[0]["parameters_sha256"] != other.results[0]["parameters_sha256"]


def test_training_changes_neither_threads_nor_random_numbers_of_the_caller(tiny_config):
    threads, state = torch.get_num_threads(), torch.random.get_rng_state()
    train(tiny_config(threads=3))
    assert torch.get_num_threads() == threads
    assert torch.equal(torch.random.get_rng_state(), state)
    assert not torch.distributed.is_initialized()


@pytest.mark.parametrize("optimizer", ["sgd", "adam"])
@pytest.mark.parametrize(("stop", "every"), [(7, 5), (13, 5), (9, 8)])
def test_an_interrupted_run_resumes_to_the_same_bits(
    tiny_config, tmp_path: Path, interrupt_at, optimizer: str, stop: int, every: int
):
    settings = {"optimizer": optimizer, "progress_every": 1}
    whole = train(tiny_config(out=tmp_path / "whole", **settings))
    config = tiny_config(checkpoint_every=every, **settings)
    with interrupt_at(stop):
        train(config)
    assert checkpoint.load(checkpoint_path(config)).step == stop // every * every
    resumed = train(config.replace(resume=True))
    assert without_times(resumed.records) == without_times(whole.records)
    assert [r["resumed"] for r in resumed.records if r["kind"] == "session"] == [False, True]


def test_a_run_interrupted_before_its_first_checkpoint_starts_anew(
    tiny_config, tmp_path: Path, interrupt_at
):
    whole = train(tiny_config(out=tmp_path / "whole"))
    config = tiny_config(checkpoint_every=5)
    with interrupt_at(3):
        train(config)
    resumed = train(config.replace(resume=True))
    assert without_times(resumed.records) == without_times(whole.records)


def test_resuming_a_finished_run_changes_nothing_but_the_session(tiny_config):
    config = tiny_config()
    first = train(config)
    again = train(config.replace(resume=True))
    assert without_times(again.records) == without_times(first.records)


def test_resuming_with_other_settings_is_refused(tiny_config):
    config = tiny_config()
    train(config)
    before = (config.out / "records.jsonl").read_bytes()
    with pytest.raises(CheckpointError, match="another configuration: epochs was 2, is now 3"):
        train(config.replace(resume=True, epochs=3))
    with pytest.raises(CheckpointError, match=r"data\.augment was 'auto', is now 'none'"):
        train(config.replace(resume=True, data=config.data.replace(augment="none")))
    assert (config.out / "records.jsonl").read_bytes() == before


def test_resuming_with_other_images_is_refused(tiny_config, class_folders: Path, interrupt_at):
    config = tiny_config(checkpoint_every=5)
    with interrupt_at(7):
        train(config)
    file = config.out / "records.jsonl"
    lines = file.read_text().splitlines(keepends=True)
    assert '"data_checksum": "' in lines[0]
    (class_folders / "train" / "dark" / "000.png").unlink()
    with pytest.raises(CheckpointError, match="belongs to other data"):
        train(config.replace(resume=True))
    # Records without a checksum: the checkpoint has one of its own.
    file.write_text(lines[0].replace("data_checksum", "unknown") + "".join(lines[1:]))
    with pytest.raises(CheckpointError, match="belongs to another configuration or other data"):
        train(config.replace(resume=True))


def test_results_of_other_images_are_not_mixed_with_new_ones(tiny_config, class_folders: Path):
    config = as_comparison(tiny_config(epochs=1), methods=[{"name": "one"}], seeds=[0])
    compare(config)
    before = (config.out / "records.jsonl").read_bytes()
    (class_folders / "train" / "dark" / "000.png").unlink()
    with pytest.raises(CheckpointError, match=r"belongs to other data \(sha256 \w{64}, now \w{64}"):
        compare(config.replace(seeds=[0, 1], resume=True))
    assert (config.out / "records.jsonl").read_bytes() == before


def test_a_session_that_cannot_be_begun_leaves_no_records(tiny_config, monkeypatch):
    def full(path: Path, text: str) -> None:
        raise OSError(errno.ENOSPC, "No space left on device", str(path))

    monkeypatch.setattr(records, "write_text", full)
    config = tiny_config()
    with pytest.raises(OSError, match="No space left on device"):
        train(config)
    assert not config.out.exists()


@pytest.mark.parametrize("text", [None, ""])
def test_resuming_nothing_is_refused(tiny_config, text: str | None):
    config = tiny_config(resume=True)
    if text is not None:
        config.out.mkdir()
        (config.out / "records.jsonl").write_text(text)
    with pytest.raises(CheckpointError, match="start without --resume"):
        train(config)


def test_a_damaged_checkpoint_is_told_before_anything_is_written(tiny_config, interrupt_at):
    config = tiny_config(checkpoint_every=5)
    with interrupt_at(7):
        train(config)
    file = checkpoint_path(config)
    file.write_bytes(file.read_bytes()[:-9])
    before = (config.out / "records.jsonl").read_bytes()
    with pytest.raises(CheckpointError, match="cannot read the checkpoint"):
        train(config.replace(resume=True))
    assert (config.out / "records.jsonl").read_bytes() == before


def test_files_of_an_earlier_session_are_set_aside(tiny_config):
    config = tiny_config()
    first = train(config)
    for number in (1, 2):
        again = train(config)
        assert again.records[0]["earlier_files"] == f"earlier-{number}"
    assert len(again.results) == 1
    kept = (config.out / "earlier-1" / "records.jsonl").read_text()
    assert len(kept.splitlines()) == len(first.records)
    assert checkpoint.load(config.out / "earlier-1/checkpoints/exact-seed0.safetensors").step == 16


def test_runs_of_a_comparison_are_paired(tiny_config):
    config = as_comparison(
        tiny_config(epochs=1), methods=[{"name": "one"}, {"name": "two"}], seeds=[3, 4]
    )
    outcome = compare(config)
    assert [(r["method"], r["seed"]) for r in outcome.results] == [
        ("one", 3),
        ("two", 3),
        ("two", 4),
        ("one", 4),
    ]
    digests = [result["parameters_sha256"] for result in outcome.results]
    assert digests[0] == digests[1] != digests[2] == digests[3]
    assert not (config.out / "checkpoints").exists()


def test_an_interrupted_comparison_keeps_its_finished_runs(tiny_config, interrupt_at):
    config = as_comparison(
        tiny_config(epochs=1, checkpoint_every=3), methods=[{"name": "one"}], seeds=[0, 1]
    )
    with interrupt_at(7):
        compare(config.replace(seeds=[0]))
    whole = compare(config)
    file = config.out / "records.jsonl"
    lines = file.read_text().splitlines(keepends=True)
    second = next(i for i, line in enumerate(lines) if '"seed": 1' in line)
    file.write_text("".join(lines[: second + 1]) + '{"kind": "prog')
    checkpoint_path(planned_runs(config)[1]).unlink()
    resumed = compare(config.replace(resume=True))
    assert without_times(resumed.records) == without_times(whole.records)


def test_a_resumed_comparison_may_have_more_seeds(tiny_config):
    config = as_comparison(tiny_config(epochs=1), methods=[{"name": "one"}], seeds=[0])
    compare(config)
    more = compare(config.replace(seeds=[0, 1], resume=True))
    assert [result["seed"] for result in more.results] == [0, 1]


def test_a_method_of_the_same_name_must_be_the_same(tiny_config):
    config = as_comparison(tiny_config(epochs=1), methods=[{"name": "one"}], seeds=[0])
    compare(config)
    file = config.out / "records.jsonl"
    changed = file.read_text().replace('"estimator": {"name": "exact"}', '"estimator": {}')
    file.write_text(changed)
    with pytest.raises(CheckpointError, match="another configuration: method 'one' was"):
        compare(config.replace(resume=True))


def test_a_diverged_run_is_recorded_as_it_is(tiny_config):
    outcome = train(tiny_config(optimizer={"name": "sgd", "lr": 1e30}))
    losses = [record["train_loss"] for record in outcome.records if record["kind"] == "epoch"]
    assert None in losses
    assert all(loss is None or math.isfinite(loss) for loss in losses)
    assert outcome.results[0]["steps"] == 16


@pytest.mark.parametrize(
    ("changes", "error", "message"),
    [
        ({"model": "vgg19"}, ConfigError, "vgg19 needs images of at least 32x32, not 8x8"),
        ({"model": "cnn2:width=x"}, ConfigError, "network cnn2"),
        ({"batch_size": 65}, ConfigError, "has only 64 training images"),
        ({"data": {"name": "folders", "path": Path("nowhere")}}, DataError, "nowhere/train"),
    ],
)
def test_wrong_input_writes_nothing(tiny_config, changes: dict, error: type, message: str):
    config = tiny_config(**changes)
    with pytest.raises(error, match=message):
        train(config)
    assert not config.out.exists()


def test_a_file_in_the_place_of_the_folder_is_told(tiny_config, tmp_path: Path):
    (tmp_path / "file").touch()
    with pytest.raises(ConfigError, match=r"file is a file, not a folder"):
        train(tiny_config(out=tmp_path / "file" / "run"))


def test_a_folder_that_cannot_be_written_is_told(
    tiny_config, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr(os, "access", lambda path, mode: False)
    with pytest.raises(ConfigError, match="cannot be written to; choose another folder"):
        train(tiny_config())


def test_warnings_are_recorded_for_every_run_and_shown_once(tiny_config):
    method = {
        "name": "far",
        "estimator": "topone",
        "schedule": "every_nth_layer:n=100,start=50",
    }
    config = as_comparison(tiny_config(epochs=1), methods=[method], seeds=[0, 1])
    with warnings.catch_warnings(record=True) as shown:
        warnings.simplefilter("always", NoEffectWarning)
        outcome = compare(config)
    found = [record for record in outcome.records if record["kind"] == "warning"]
    assert [(record["method"], record["seed"]) for record in found] == [("far", 0), ("far", 1)]
    assert "selects none of the 2 chosen layers" in found[0]["text"]
    assert found[0]["process"] == os.getpid()
    assert [str(warning.message) for warning in shown] == [found[0]["text"]]
