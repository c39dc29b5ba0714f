"""The numbers of the table as text, once, for the terminal and for the HTML report."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from slimgrad.experiments.statistics import Estimate, Spread, Verdict
from slimgrad.experiments.summary import QUANTITIES, Quantity, QuantitySummary, Summary

ABSENT = "–"


@dataclass(frozen=True)
class Unit:
    """How a quantity is printed.

    Attributes:
        label: unit of values, as in the heading.
        difference_label: unit of paired differences.
        factor: what a stored value is multiplied with.
        decimals: digits after the point.
    """

    label: str
    difference_label: str
    factor: float
    decimals: int


@dataclass(frozen=True)
class Effect:
    """One paired effect: "saved" "4.2 %" "[1.0, 7.3]"."""

    label: str
    mean: str
    interval: str

    @property
    def text(self) -> str:
        """The effect on one line."""
        return " ".join(part for part in (self.label, self.mean, self.interval) if part)


@dataclass(frozen=True)
class Cell:
    """One quantity of one method.

    Attributes:
        value: mean and sd.
        effects: paired comparison with exact, empty for the exact run.
        verdict: what the interval shows; None where nothing is compared.
    """

    value: str
    effects: tuple[Effect, ...]
    verdict: Verdict | None


@dataclass(frozen=True)
class Row:
    """One method: its name, how many seeds finished of how many, its cells."""

    method: str
    seeds: str
    cells: tuple[Cell, ...]


@dataclass(frozen=True)
class Table:
    """The whole table: one heading a quantity, one row a method."""

    headings: tuple[str, ...]
    rows: tuple[Row, ...]
    notes: tuple[str, ...]


def signed(value: float, decimals: int) -> str:
    """A number with its sign and a true minus; a rounded zero has no sign.

    >>> signed(-0.104, 2), signed(0.5, 1), signed(-0.0001, 2)
    ('−0.10', '+0.5', '0.00')
    """
    text = f"{value:+.{decimals}f}"
    if float(text) == 0:
        return text[1:]
    return text.replace("-", "−")


def plain(value: float, decimals: int) -> str:
    """A number with a true minus; a rounded zero has no sign.

    >>> plain(-1.26, 1), plain(-0.01, 1)
    ('−1.3', '0.0')
    """
    text = f"{value:.{decimals}f}"
    return (text.lstrip("-") if float(text) == 0 else text).replace("-", "−")


def unit_of(quantity: Quantity, summary: Summary) -> Unit:
    """The unit that suits all methods of ``summary`` for one quantity."""
    if quantity.name == "final_accuracy":
        return Unit("%", "points", 100, 2)
    if quantity.name == "saved_macs_share":
        return Unit("%", "points", 100, 1)
    if quantity.name == "bits_per_component":
        return Unit("bits", "bits", 1, 2)
    spreads = [method.quantities[quantity.name].spread for method in summary.methods]
    largest = max((found.mean for found in spreads if found is not None), default=1.0)
    if largest < 1:
        return Unit("ms", "ms", 1000, 1 if largest >= 0.01 else 3)
    if largest < 600:
        return Unit("s", "s", 1, 1)
    return Unit("min", "min", 1 / 60, 1)


def spread_text(found: Spread | None, unit: Unit, *, counted: bool = False) -> str:
    """Mean and sd, without the unit; the mean alone for a count that is the same in every seed.

    >>> spread_text(Spread(3, 0.9712, 0.0031), Unit("%", "points", 100, 2))
    '97.12 ± 0.31'
    """
    if found is None:
        return ABSENT
    mean = plain(found.mean * unit.factor, unit.decimals)
    if found.sd is None or (counted and found.sd <= 1e-9 * abs(found.mean)):
        return mean
    return f"{mean} ± {plain(found.sd * unit.factor, unit.decimals)}"


def interval_text(found: Estimate, number: Callable[[float], str]) -> str:
    """The interval in brackets, or in words why there is none."""
    if found.low is None or found.high is None:
        return "no interval"
    if found.low == found.high:
        return "every seed" if found.n > 1 else "one seed"
    return f"[{number(found.low)}, {number(found.high)}]"


def cell_of(quantity: Quantity, found: QuantitySummary, unit: Unit) -> Cell:
    """The cell of one method for one quantity."""
    if found.time is not None:
        effects = tuple(
            Effect(label, f"{percent(effect.mean)} %", interval_text(effect, percent))
            for label, effect in (
                ("saved", found.time.time_saved),
                ("gain", found.time.throughput_gain),
            )
        )
    elif found.difference is not None:

        def number(value: float) -> str:
            return signed(value * unit.factor, unit.decimals)

        mean = number(found.difference.mean)
        effects = (Effect("", mean, interval_text(found.difference, number)),)
    else:
        effects = ()
    value = spread_text(found.spread, unit, counted=quantity.counted)
    return Cell(value, effects, found.verdict(quantity))


def table_of(summary: Summary) -> Table:
    """The table of a summary, with the notes that belong under it."""
    units = {quantity.name: unit_of(quantity, summary) for quantity in QUANTITIES}
    headings = tuple(_heading(quantity, units[quantity.name]) for quantity in QUANTITIES)
    rows = []
    for method in summary.methods:
        cells = tuple(
            cell_of(quantity, method.quantities[quantity.name], units[quantity.name])
            for quantity in QUANTITIES
        )
        done, planned = len(method.finished_seeds), len(summary.seeds)
        seeds = f"{done} of {planned} seeds" if done != planned else _count(done, "seed")
        rows.append(Row(method.name, seeds, cells))
    return Table(headings, tuple(rows), tuple(_notes(summary)))


def _heading(quantity: Quantity, unit: Unit) -> str:
    return quantity.heading if unit.label == "bits" else f"{quantity.heading}, {unit.label}"


def percent(share: float) -> str:
    """A share in per cent, without the sign; very large ones only as such.

    Two seeds that disagree give ends like -5460 %, whose digits mean nothing.

    >>> percent(-0.1254), percent(-54.6), percent(28.698)
    ('−12.5', '<−999', '>999')
    """
    if abs(share) >= 9.995:
        return ">999" if share > 0 else "<−999"
    return plain(share * 100, 1)


def _count(n: int, noun: str) -> str:
    return f"{n} {noun}" if n == 1 else f"{n} {noun}s"


def _notes(summary: Summary) -> list[str]:
    notes = ["Values are mean ± standard deviation over seeds."]
    if summary.reference is None:
        notes.append("There is no exact run to compare with, so no differences are given.")
    else:
        notes.append(
            f"Below them: the difference from {summary.reference}, paired by seed, with its 95 % "
            "interval. Times are given as time saved and as throughput gain. "
            "* marks an interval that excludes zero: a difference beyond chance."
        )
        notes.append(
            "MACs saved: share of the weight-gradient multiply-adds of the whole network skipped."
        )
    if len(summary.seeds) == 1:
        notes.append("One seed gives no interval: nothing is concluded from this comparison.")
    notes += [
        f"Attention: {run.method}, seed {run.seed}: {run.reason}." for run in summary.incomplete
    ]
    notes += [f"Attention: {text}." for text in summary.warnings]
    return notes
