"""Reads the records of a comparison back as runs: one for each method and seed."""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass, field

from slimgrad.core.errors import DataError
from slimgrad.experiments.records import Record

RunKey = tuple[str, int]


@dataclass(frozen=True)
class Epoch:
    """What was measured at the end of one epoch; None where it was not, or was not finite.

    Attributes:
        epoch: number of the epoch as recorded.
        step: optimizer steps taken so far.
        train_loss, test_loss: mean losses.
        test_accuracy: share of test examples classified rightly, in [0, 1].
        elapsed_seconds: training time so far, evaluation excluded.
        diverged: whether a training loss was recorded that is not a finite number.
    """

    epoch: int
    step: int
    train_loss: float | None
    test_loss: float | None
    test_accuracy: float | None
    elapsed_seconds: float | None
    diverged: bool = False


@dataclass
class Run:
    """One method with one seed, as far as the records show it."""

    method: str
    seed: int
    epochs: list[Epoch] = field(default_factory=list)
    result: Record | None = None
    last_progress: Record | None = None
    warnings: list[str] = field(default_factory=list)

    @property
    def diverged(self) -> bool:
        """Whether the training loss of some epoch was not a finite number."""
        return any(epoch.diverged for epoch in self.epochs)


@dataclass
class RecordedComparison:
    """All runs of one comparison, those that never began included.

    Attributes:
        session: the session record: command, config, versions, hardware.
        methods: names in the order of the comparison; the exact run's name is ``reference``.
        seeds: seeds of the comparison.
        runs: one for each planned (method, seed).
    """

    session: Record
    methods: list[str]
    seeds: list[int]
    runs: dict[RunKey, Run]

    @property
    def reference(self) -> str | None:
        """The exact run's method, which the others are compared with; None without one.

        The session record names it. Where it does not, it is the first method whose configuration
        neither approximates nor quantizes, or else the one called "exact".
        """
        if "reference" in self.session:
            named = self.session["reference"]
            return named if named in self.methods else None
        config = self.session.get("config")
        described = config.get("methods") if isinstance(config, dict) else None
        for method in described if isinstance(described, list) else []:
            if isinstance(method, dict) and _is_exact(method) and method["name"] in self.methods:
                return method["name"]
        return "exact" if "exact" in self.methods else None


def _is_exact(method: Record) -> bool:
    estimator = method.get("estimator")
    if isinstance(estimator, dict):
        estimator = estimator.get("name")
    return "name" in method and estimator == "exact" and method.get("quantizer") is None


def finite(value: object) -> float | None:
    """``value`` as a float, or None when it is missing or not a finite number.

    >>> finite(2), finite(float("nan")), finite("fast")
    (2.0, None, None)
    """
    if isinstance(value, bool) or not isinstance(value, int | float):
        return None
    return float(value) if math.isfinite(value) else None


def collect(records: Iterable[Record]) -> RecordedComparison:
    """The runs that ``records`` tell of; a later record of an epoch or run replaces an earlier.

    Raises:
        DataError: there is no session record.
    """
    records = list(records)
    sessions = [record for record in records if record["kind"] == "session"]
    if not sessions:
        raise DataError("the records hold no session record; the comparison never started")
    session = sessions[-1]
    methods, seeds = list(session["methods"]), list(session["seeds"])
    runs = {(method, seed): Run(method, seed) for method in methods for seed in seeds}
    for record in records:
        if record["kind"] == "session":
            continue
        run = runs.get((record.get("method", ""), record.get("seed", -1)))
        if run is None:
            continue  # a method or seed that a later session no longer asks for
        if record["kind"] == "progress":
            run.last_progress = record
        elif record["kind"] == "epoch":
            _add_epoch(run, record)
        elif record["kind"] == "result":
            run.result = record
        elif record["kind"] == "warning":
            run.warnings.append(str(record["text"]))
    return RecordedComparison(session, methods, seeds, runs)


def _add_epoch(run: Run, record: Record) -> None:
    epoch = Epoch(
        int(record["epoch"]),
        int(record["step"]),
        finite(record.get("train_loss")),
        finite(record.get("test_loss")),
        finite(record.get("test_accuracy")),
        finite(record.get("elapsed_seconds")),
        diverged="train_loss" in record and finite(record["train_loss"]) is None,
    )
    kept = [earlier for earlier in run.epochs if earlier.epoch < epoch.epoch]
    run.epochs = [*kept, epoch]
