"""What a question of ``slimgrad theory`` is answered with: a table of facts, or JSON."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from slimgrad.cli.output import print_aligned, print_json

LONGEST_LIST = 9

Value = float | int | str | bool | None | Sequence[float]


@dataclass(frozen=True)
class Fact:
    """One line of an answer.

    Attributes:
        key: name in JSON.
        label: words in the table.
        value: None where there is no number; then ``note`` says why.
        note: what to know beside the value.
    """

    key: str
    label: str
    value: Value
    note: str = ""


@dataclass
class Answer:
    """The answer to one question.

    Attributes:
        subject: what the question was about.
        facts: in the order of the table.
        assumptions: what must hold for the numbers to.
    """

    subject: str
    facts: list[Fact] = field(default_factory=list)
    assumptions: tuple[str, ...] = ()

    def add(self, key: str, label: str, value: Value, note: str = "") -> None:
        """Append one line."""
        self.facts.append(Fact(key, label, value, note))

    def show(self, *, json: bool) -> int:
        """Print the answer, as JSON or as a table; the exit code 0."""
        if json:
            print_json(self.to_jsonable())
        else:
            print("\n".join(self.lines()))
        return 0

    def to_jsonable(self) -> dict[str, Any]:
        """The answer as a tree; notes stand beside the values they belong to."""
        tree: dict[str, Any] = {"subject": self.subject}
        tree |= {fact.key: _finite(fact.value) for fact in self.facts}
        tree["notes"] = {fact.key: fact.note for fact in self.facts if fact.note}
        tree["assumptions"] = list(self.assumptions)
        return tree

    def lines(self) -> list[str]:
        """The answer as a table of labels, values and notes."""
        labels = max((len(fact.label) for fact in self.facts), default=0)
        texts = [spelled(fact.value) for fact in self.facts]
        # One long list of levels must not push all notes to the right.
        values = max((len(text) for text in texts if len(text) <= 14), default=0)
        lines = [self.subject]
        for fact, text in zip(self.facts, texts, strict=True):
            row = f"  {fact.label:<{labels}}  {text:>{values}}"
            lines.append(f"{row}  {fact.note}".rstrip())
        if self.assumptions:
            lines += ["holds when", *(f"  {assumption}" for assumption in self.assumptions)]
        return lines


def spelled(value: Value) -> str:
    """A value as a person reads it.

    >>> spelled(0.5), spelled(1234567), spelled(True), spelled(None), spelled((0.0, 1.0))
    ('0.5', '1,234,567', 'yes', '-', '0, 1')
    """
    if value is None:
        return "-"
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, str):
        return value
    if isinstance(value, int):
        return f"{value:,}" if value < 10**15 else f"{value:.4g}"
    if isinstance(value, float):
        return f"{value:.6g}"
    shown = [f"{n:,}" if isinstance(n, int) else f"{n:.4g}" for n in value]
    if len(shown) > LONGEST_LIST:
        shown = [*shown[: LONGEST_LIST - 2], "...", shown[-1]]
    return ", ".join(shown)


def _finite(value: Value) -> Any:
    """What JSON can hold: infinite and undefined numbers become null."""
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    if value is None or isinstance(value, str | int):
        return value
    return [_finite(number) for number in value]


def print_rows(rows: Sequence[Sequence[Value]], header: Sequence[str]) -> None:
    """Print a table: the first column to the left, numbers to the right."""
    print_aligned(header, [[spelled(value) for value in row] for row in rows], left=1)
