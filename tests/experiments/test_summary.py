from __future__ import annotations

import json
import math
from pathlib import Path
from typing import Any

import pytest
import sample_records as samples

from slimgrad.core.errors import DataError
from slimgrad.experiments.report.cells import table_of
from slimgrad.experiments.summary import (
    QUANTITIES,
    summarize_file,
    summarize_records,
    to_json,
    to_jsonable,
)


def _results(records: list[dict[str, Any]]) -> list[dict[str, Any]]:
    return [record for record in records if record["kind"] == "result"]


def test_summary_of_known_results() -> None:
    records = samples.records(("exact", "topone"), (1, 2, 3))
    accuracy = {("exact", 1): 0.90, ("exact", 2): 0.92, ("exact", 3): 0.94}
    accuracy |= {("topone", 1): 0.89, ("topone", 2): 0.90, ("topone", 3): 0.91}
    for result in _results(records):
        result["final_accuracy"] = accuracy[result["method"], result["seed"]]
        result["total_seconds"] = 10.0 if result["method"] == "exact" else 5.0 + result["seed"]
    summary = summarize_records(records)
    exact, topone = summary.methods
    assert (summary.reference, exact.is_reference, topone.is_reference) == ("exact", True, False)
    found = topone.quantities["final_accuracy"]
    assert found.spread is not None
    assert found.difference is not None
    assert found.spread.mean == pytest.approx(0.90)
    assert found.spread.sd == pytest.approx(0.01)
    # Differences -0.01, -0.02, -0.03.
    assert found.difference.mean == pytest.approx(-0.02)
    assert found.difference.high == pytest.approx(-0.02 + 4.302653 * 0.01 / math.sqrt(3))
    total = topone.quantities["total_seconds"]
    assert total.time is not None
    assert total.difference is None
    assert total.time.time_saved.mean == pytest.approx(1 - (0.6 * 0.7 * 0.8) ** (1 / 3))
    assert exact.quantities["total_seconds"].effect is None


def test_verdicts_follow_the_direction_that_is_good() -> None:
    summary = summarize_records(samples.records())
    by_name = {quantity.name: quantity for quantity in QUANTITIES}
    nuqsgd = summary.method("nuqsgd").quantities
    assert nuqsgd["bits_per_component"].verdict(by_name["bits_per_component"]) == "better"
    macs = by_name["saved_macs_share"]
    assert nuqsgd["saved_macs_share"].verdict(macs) == "no difference shown"
    topone = summary.method("topone").quantities
    assert topone["saved_macs_share"].verdict(macs) == "better"
    assert topone["seconds_per_step"].verdict(by_name["seconds_per_step"]) == "better"
    exact = summary.method("exact").quantities
    assert exact["seconds_per_step"].verdict(by_name["seconds_per_step"]) is None


def test_incomplete_runs_are_named_and_not_averaged() -> None:
    records = [samples.session()]
    for method in samples.METHODS:
        records += samples.run_records(method, 1)
    records += samples.run_records("exact", 2)
    records += samples.run_records("topone", 2)[:7]
    records += samples.run_records("nuqsgd", 2)[:1]
    summary = summarize_records(records)
    reasons = {(run.method, run.seed): run.reason for run in summary.incomplete}
    assert reasons["topone", 2] == "stopped after epoch 2 (step 120)"
    assert reasons["nuqsgd", 2] == "stopped at step 30 of 300"
    assert reasons["topone+nuqsgd", 2] == "never started"
    assert ("exact", 2) not in reasons
    assert ("exact", 3) in reasons
    assert summary.method("topone").finished_seeds == (1,)
    accuracy = summary.method("topone").quantities["final_accuracy"]
    assert accuracy.difference is not None
    assert accuracy.difference.n == 1


def test_a_result_without_a_finite_accuracy_is_named() -> None:
    records = samples.records(("exact", "topone"), (1, 2))
    _results(records)[-1]["final_accuracy"] = float("nan")
    summary = summarize_records(records)
    assert [run.reason for run in summary.incomplete] == ["finished without a finite accuracy"]
    assert set(summary.method("topone").quantities["final_accuracy"].values) == {1}
    json.loads(to_json(summary), parse_constant=pytest.fail)


def test_a_diverged_run_is_named_and_kept() -> None:
    records = samples.records(("exact", "topone"), (1, 2))
    epochs = [record for record in records if record["kind"] == "epoch"]
    epochs[-1]["train_loss"] = float("inf")
    summary = summarize_records(records)
    assert [(run.method, run.seed) for run in summary.incomplete] == [("topone", 2)]
    assert "diverged" in summary.incomplete[0].reason
    assert set(summary.method("topone").quantities["final_accuracy"].values) == {1, 2}


def test_without_an_exact_run_nothing_is_compared() -> None:
    summary = summarize_records(samples.records(("topone", "nuqsgd"), (1, 2)))
    assert summary.reference is None
    for method in summary.methods:
        assert all(found.effect is None for found in method.quantities.values())


def test_a_time_of_zero_is_no_time() -> None:
    records = samples.records(("exact", "topone"), (1, 2))
    _results(records)[0]["seconds_per_step"] = 0.0
    exact = summarize_records(records).method("exact")
    assert set(exact.quantities["seconds_per_step"].values) == {2}


def test_a_quantity_missing_everywhere_is_absent() -> None:
    records = samples.records(("exact", "topone"), (1, 2))
    for result in _results(records):
        del result["bits_per_component"]
    found = summarize_records(records).method("topone").quantities["bits_per_component"]
    assert (found.spread, found.difference) == (None, None)


def test_json_holds_every_number_and_the_verdicts(tmp_path: Path) -> None:
    path = samples.write(tmp_path / "records.jsonl", samples.records())
    summary = summarize_file(path)
    tree = json.loads(to_json(summary))
    assert (tree["summary_version"], tree["confidence"]) == (1, 0.95)
    topone = next(method for method in tree["methods"] if method["name"] == "topone")
    for quantity in QUANTITIES:
        entry = topone["quantities"][quantity.name]
        assert entry["verdict"] in ("better", "worse", "no difference shown")
        assert entry["better"] == quantity.better
        assert set(entry["values"]) == {"1", "2", "3"}
        assert (entry["time"] is not None) == quantity.is_time
    saved = topone["quantities"]["total_seconds"]["time"]["time_saved"]
    assert saved["low"] < saved["mean"] < saved["high"]


def test_a_file_that_is_no_record_file_is_refused(tmp_path: Path) -> None:
    (tmp_path / "records.jsonl").write_text("nothing\nof the kind\n")
    with pytest.raises(DataError, match="line 1"):
        summarize_file(tmp_path / "records.jsonl")


def test_warnings_are_named_once_a_method() -> None:
    records = samples.records(("exact", "topone"), (1, 2))
    warning = {"kind": "warning", "method": "topone", "text": "it selects no layer"}
    records += [warning | {"seed": seed} for seed in (1, 2)]
    summary = summarize_records(records)
    assert summary.warnings == ("topone: it selects no layer",)
    assert to_jsonable(summary)["warnings"] == ["topone: it selects no layer"]
    assert table_of(summary).notes[-1] == "Attention: topone: it selects no layer."
