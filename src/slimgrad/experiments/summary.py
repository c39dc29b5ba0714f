"""From records to a summary: per method, what was reached, what it took, and beside exact."""

from __future__ import annotations

import json
import math
from collections.abc import Iterable
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from slimgrad.experiments.records import Record, read_records
from slimgrad.experiments.runs import RecordedComparison, Run, collect, finite
from slimgrad.experiments.statistics import (
    Direction,
    Estimate,
    Spread,
    TimeComparison,
    Verdict,
    compare_times,
    paired_difference,
    spread,
)

SUMMARY_VERSION = 1


@dataclass(frozen=True)
class Quantity:
    """Something reported for every method.

    Attributes:
        name: field of a result record.
        title: what it is, in running text.
        heading: column heading.
        better: which direction is good.
        counted: whether it is counted rather than measured, hence free of noise.
        is_time: whether it is compared as a ratio (time saved, throughput gain).
    """

    name: str
    title: str
    heading: str
    better: Direction
    counted: bool = False
    is_time: bool = False


QUANTITIES = (
    Quantity("final_accuracy", "final accuracy", "accuracy", "higher"),
    Quantity("seconds_per_step", "time per step", "time per step", "lower", is_time=True),
    Quantity("total_seconds", "training time", "total time", "lower", is_time=True),
    Quantity("bits_per_component", "bits sent", "bits per component", "lower", counted=True),
    Quantity(
        "saved_macs_share",
        "weight-gradient multiply-adds saved",
        "MACs saved",
        "higher",
        counted=True,
    ),
)


@dataclass(frozen=True)
class QuantitySummary:
    """One quantity of one method over its finished seeds.

    Attributes:
        values: value of each seed; seeds without a finite value are absent.
        spread: mean and sd; None when no seed has a value.
        difference: paired difference to the exact run in the quantity's own unit; None for the
            exact run itself, without one, and for times, which are compared as ratios.
        time: paired comparison of times; None for other quantities.
    """

    values: dict[int, float]
    spread: Spread | None
    difference: Estimate | None
    time: TimeComparison | None

    @property
    def effect(self) -> Estimate | None:
        """The paired effect that verdicts are based on: time saved, or the difference."""
        return self.time.time_saved if self.time is not None else self.difference

    def verdict(self, quantity: Quantity) -> Verdict | None:
        """What the paired interval shows; None where nothing is compared."""
        if self.effect is None:
            return None
        return self.effect.verdict("higher" if quantity.is_time else quantity.better)


@dataclass(frozen=True)
class MethodSummary:
    """One method.

    Attributes:
        name: as in the records.
        is_reference: whether it is the exact run the others are compared with.
        finished_seeds: seeds with a result.
        quantities: by name, see ``QUANTITIES``.
    """

    name: str
    is_reference: bool
    finished_seeds: tuple[int, ...]
    quantities: dict[str, QuantitySummary]


@dataclass(frozen=True)
class IncompleteRun:
    """A planned run without a result, or one whose result cannot be averaged."""

    method: str
    seed: int
    reason: str


@dataclass(frozen=True)
class Summary:
    """What a comparison found.

    Attributes:
        reference: name of the exact run; None when it was not part of the comparison.
        seeds: planned seeds.
        methods: in the order of the comparison.
        incomplete: runs that are missing from the averages, and why.
        warnings: what slimgrad warned of, each as "method: text".
    """

    reference: str | None
    seeds: tuple[int, ...]
    methods: tuple[MethodSummary, ...]
    incomplete: tuple[IncompleteRun, ...]
    warnings: tuple[str, ...] = ()

    def method(self, name: str) -> MethodSummary:
        """The summary of the method called ``name``."""
        return next(method for method in self.methods if method.name == name)


def summarize(comparison: RecordedComparison) -> Summary:
    """The summary of a recorded comparison; runs that did not finish are listed, never dropped."""
    reference = comparison.reference
    values = {
        method: {quantity.name: _values(comparison, method, quantity) for quantity in QUANTITIES}
        for method in comparison.methods
    }
    methods = []
    for name in comparison.methods:
        against = values[reference] if reference is not None and name != reference else {}
        quantities = {
            quantity.name: _summarize(
                quantity, values[name][quantity.name], against.get(quantity.name)
            )
            for quantity in QUANTITIES
        }
        finished = tuple(s for s in comparison.seeds if comparison.runs[name, s].result is not None)
        methods.append(MethodSummary(name, name == reference, finished, quantities))
    incomplete = [
        IncompleteRun(run.method, run.seed, reason)
        for run in comparison.runs.values()
        if (reason := _what_is_missing(run))
    ]
    warned = [f"{run.method}: {text}" for run in comparison.runs.values() for text in run.warnings]
    return Summary(
        reference,
        tuple(comparison.seeds),
        tuple(methods),
        tuple(incomplete),
        tuple(dict.fromkeys(warned)),  # seeds repeat the warnings of their method
    )


def summarize_records(records: Iterable[Record]) -> Summary:
    """The summary of ``records``; see :func:`summarize`."""
    return summarize(collect(records))


def summarize_file(path: Path) -> Summary:
    """The summary of a records file; DataError when it cannot be read."""
    return summarize_records(read_records(path))


def to_jsonable(summary: Summary) -> dict[str, Any]:
    """The summary as plain JSON values, with a verdict beside each comparison.

    Numbers that are not finite become null, so every JSON reader accepts the result.
    """
    tree = asdict(summary)
    for method, plain in zip(summary.methods, tree["methods"], strict=True):
        for quantity in QUANTITIES:
            entry = plain["quantities"][quantity.name]
            entry["verdict"] = method.quantities[quantity.name].verdict(quantity)
            entry["better"] = quantity.better
    return {"summary_version": SUMMARY_VERSION, "confidence": 0.95, **_finite_tree(tree)}


def to_json(summary: Summary) -> str:
    """The summary as indented JSON text."""
    return json.dumps(to_jsonable(summary), indent=2, allow_nan=False)


def _values(comparison: RecordedComparison, method: str, quantity: Quantity) -> dict[int, float]:
    found = {}
    for seed in comparison.seeds:
        result = comparison.runs[method, seed].result
        value = None if result is None else finite(result.get(quantity.name))
        if value is not None and not (quantity.is_time and value <= 0):
            found[seed] = value
    return found


def _summarize(
    quantity: Quantity, values: dict[int, float], reference: dict[int, float] | None
) -> QuantitySummary:
    averaged = spread(list(values.values())) if values else None
    if reference is None:
        return QuantitySummary(values, averaged, None, None)
    if quantity.is_time:
        return QuantitySummary(values, averaged, None, compare_times(values, reference))
    difference = paired_difference(values, reference, counted=quantity.counted)
    return QuantitySummary(values, averaged, difference, None)


def _what_is_missing(run: Run) -> str:
    """Why a run is not, or not wholly, in the averages; "" when it is."""
    if run.result is None:
        if run.epochs:
            last = run.epochs[-1]
            return f"stopped after epoch {last.epoch} (step {last.step})"
        if run.last_progress is not None:
            return f"stopped at step {run.last_progress['step']} of {run.last_progress['steps']}"
        return "never started"
    if finite(run.result.get("final_accuracy")) is None:
        return "finished without a finite accuracy"
    if run.diverged:
        return "diverged: its training loss became infinite or not a number (kept in the averages)"
    return ""


def _finite_tree(tree: Any) -> Any:
    if isinstance(tree, dict):
        return {str(key): _finite_tree(value) for key, value in tree.items()}
    if isinstance(tree, list | tuple):
        return [_finite_tree(value) for value in tree]
    if isinstance(tree, float) and not math.isfinite(tree):
        return None
    return tree
