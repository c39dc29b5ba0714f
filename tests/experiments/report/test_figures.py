from __future__ import annotations

import re
from typing import Any

import sample_records as samples

from slimgrad.experiments.report.figures import all_figures
from slimgrad.experiments.runs import collect
from slimgrad.experiments.summary import summarize


def _figures(records: list[dict[str, Any]]) -> dict[str, str]:
    comparison = collect(records)
    return {figure.name: figure.svg for figure in all_figures(comparison, summarize(comparison))}


def _x_of_markers(svg: str) -> list[float]:
    return [float(x) for x in re.findall(r'<use [^>]*\bx="([\d.]+)"', svg)]


def test_without_a_pair_there_are_no_intervals_and_the_curves_remain() -> None:
    records = [samples.session(("exact", "topone"), (1,)), *samples.run_records("exact", 1)]
    assert set(_figures(records)) == {"accuracy-epoch", "accuracy-time", "train-loss",
                                      "test-loss", "bits"}  # fmt: skip


def test_wide_intervals_do_not_squeeze_the_others() -> None:
    records = samples.records(("exact", "topone"), (1, 2))
    seconds = {("exact", 1): 10, ("exact", 2): 10, ("topone", 1): 5, ("topone", 2): 20}
    for record in records:
        if record["kind"] == "result":
            record["total_seconds"] = seconds[record["method"], record["seed"]]
    svg = _figures(records)["intervals"]
    # The interval reaches down to a million per cent; the axis ends where the arrows are.
    assert "training time saved, %: 0.0, from &lt;−999 to 100.0" in svg
    assert "−150" in svg
    assert "−1000" not in re.sub(r"<desc.*?</desc>", "", svg)
    assert all(0 <= x <= 324 for x in _x_of_markers(svg))


def test_losses_that_hardly_change_keep_a_linear_scale() -> None:
    records = samples.records(("exact",), (1, 2))
    steep = _figures(records)["train-loss"]
    for record in records:
        if record["kind"] == "epoch":
            record["train_loss"] = 1.0 + 0.1 / record["epoch"]
    flat = _figures(records)["train-loss"]
    assert ">0.2<" in steep
    assert ">0.5<" in steep
    assert ">1.10<" in flat


def test_the_mean_stops_where_a_seed_stopped() -> None:
    records = [samples.session(("exact",), (1, 2)), *samples.run_records("exact", 1)]
    records += [r for r in samples.run_records("exact", 2) if r.get("step", 0) <= 120][:-1]
    records += [r for r in samples.run_records("exact", 2) if r.get("epoch") == 2]
    ends = re.search(r"exact ends at (\d+\.\d)", _figures(records)["accuracy-epoch"])
    assert ends is not None
    second = [
        r["test_accuracy"] * 100
        for seed in (1, 2)
        for r in samples.run_records("exact", seed)
        if r.get("epoch") == 2
    ]
    assert float(ends[1]) == round(sum(second) / 2, 1)
