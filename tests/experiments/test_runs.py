from __future__ import annotations

import json
from pathlib import Path

import pytest
import sample_records as samples

from slimgrad.core.errors import DataError
from slimgrad.experiments.records import read_records
from slimgrad.experiments.runs import collect, finite


def test_records_survive_the_file(tmp_path: Path) -> None:
    found = samples.records(("exact",), (1,))
    assert read_records(samples.write(tmp_path / "records.jsonl", found)) == found


def test_a_last_line_cut_off_is_left_out(tmp_path: Path) -> None:
    path = samples.write(tmp_path / "records.jsonl", samples.records(("exact",), (1,)))
    text = path.read_text()
    path.write_text(text[:-20])
    assert len(read_records(path)) == text.count("\n") - 1


def test_a_last_line_without_newline_is_kept_when_whole(tmp_path: Path) -> None:
    path = samples.write(tmp_path / "records.jsonl", samples.records(("exact",), (1,)))
    path.write_text(path.read_text().rstrip("\n"))
    assert read_records(path)[-1]["kind"] == "result"


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ("{broken", "line 2 is not a JSON record"),
        ("[1, 2]", 'line 2 has no "kind"'),
        ('{"kind": "epoch", "method": "exact", "seed": 1}', "epoch record without epoch, step"),
    ],
)
def test_altered_lines_are_named(tmp_path: Path, line: str, message: str) -> None:
    path = tmp_path / "records.jsonl"
    path.write_text(json.dumps(samples.session()) + f"\n{line}\n\n")
    with pytest.raises(DataError, match=message):
        read_records(path)


def test_a_missing_file_is_named(tmp_path: Path) -> None:
    with pytest.raises(DataError, match=r"cannot read the records .*absent\.jsonl"):
        read_records(tmp_path / "absent.jsonl")


def test_without_a_session_nothing_is_collected() -> None:
    with pytest.raises(DataError, match="never started"):
        collect(samples.run_records("exact", 1))


def test_an_epoch_done_again_after_a_resume_replaces_the_earlier_one() -> None:
    found = samples.records(("exact",), (1,))
    again = {**next(r for r in found if r["kind"] == "epoch" and r["epoch"] == 4)}
    again["test_accuracy"] = 0.5
    run = collect([*found, again]).runs["exact", 1]
    assert [epoch.epoch for epoch in run.epochs] == [1, 2, 3, 4]
    assert run.epochs[-1].test_accuracy == 0.5


def test_runs_outside_the_last_session_are_left_out() -> None:
    found = [*samples.records(), samples.session(("exact", "topone"), (1, 2))]
    assert set(collect(found).runs) == {(m, s) for m in ("exact", "topone") for s in (1, 2)}


def test_the_reference_is_what_the_session_names() -> None:
    session = samples.session(("plain", "topone"))
    assert collect([{**session, "reference": "plain"}]).reference == "plain"
    assert collect([{**session, "reference": None}]).reference is None
    assert collect([{**session, "reference": "gone"}]).reference is None


def test_the_reference_is_else_the_method_that_changes_nothing() -> None:
    session = samples.session(("plain", "topone"))
    del session["reference"]
    session["config"]["methods"][0] = {"name": "plain", "estimator": {"name": "exact"}}
    assert collect([session]).reference == "plain"
    session["config"] = {}
    assert collect([session]).reference is None
    bare = {"kind": "session", "methods": ["topone", "exact"], "seeds": [0]}
    assert collect([bare]).reference == "exact"


def test_a_loss_that_is_not_finite_marks_a_run_as_diverged() -> None:
    found = samples.records(("exact",), (1,))
    assert not collect(found).runs["exact", 1].diverged
    next(r for r in found if r["kind"] == "epoch")["train_loss"] = float("nan")
    assert collect(found).runs["exact", 1].diverged


def test_finite_refuses_everything_else() -> None:
    assert [finite(v) for v in (True, None, "1", float("inf"), 2)] == [None, None, None, None, 2.0]
