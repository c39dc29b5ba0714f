"""The table of a comparison in the terminal, and as plain text."""

from __future__ import annotations

import io
import re

from rich import box
from rich.console import Console, Group, RenderableType
from rich.measure import Measurement
from rich.padding import Padding
from rich.table import Table as RichTable
from rich.text import Text

from slimgrad.experiments.report.cells import Cell, Row, Table, table_of
from slimgrad.experiments.summary import Summary

# Longer names are broken, first after each "+", so that the table fits 80 columns.
_NAME_WIDTH = 13
_STYLES = {"better": "green", "worse": "red", "no difference shown": "", None: ""}


def rich_table(summary: Summary, width: int | None = None) -> RenderableType:
    """The table for a terminal ``width`` columns wide; one block a method where it does not fit.

    Args:
        summary: what to show.
        width: columns available; None for as many as the table needs.
    """
    table = table_of(summary)
    for gap in (2, 0):
        grid = _grid(table, gap)
        if width is None or _needed(grid) <= width:
            return Group(grid, "", *_notes(table))
    return Group(*_blocks(table), "", *_notes(table))


def plain_table(summary: Summary) -> str:
    """The table as plain text: no colours, no control codes, as wide as it needs to be."""
    table = table_of(summary)
    grid, written = _grid(table), io.StringIO()
    Console(file=written, color_system=None, width=_needed(grid), highlight=False).print(grid)
    lines = [line.rstrip() for line in written.getvalue().splitlines()]
    return "\n".join([*lines, "", *table.notes]) + "\n"


def _grid(table: Table, gap: int = 2) -> RichTable:
    grid = RichTable(box=box.SIMPLE_HEAD, show_lines=True, show_edge=False, padding=0)
    names = [_name(row) for row in table.rows]
    longest = max(len(line) for name in names for line in name.plain.split("\n"))
    grid.add_column("method", width=min(longest, _NAME_WIDTH), overflow="fold")
    for heading in table.headings:
        grid.add_column(heading, justify="right", width=_column_width(table, heading) + gap)
    for row, name in zip(table.rows, names, strict=True):
        grid.add_row(name, *(_cell(cell) for cell in row.cells))
    return grid


def _name(row: Row) -> Text:
    label = row.method
    if len(label) > _NAME_WIDTH:
        label = re.sub(r"\+\s*", "+\n", label)
    return Text(label, style="bold").append(f"\n{row.seeds}", style="not bold dim")


def _column_width(table: Table, heading: str) -> int:
    """Width of the widest line of a column; headings wrap at spaces, numbers never do."""
    index = table.headings.index(heading)
    lines = heading.split()
    for row in table.rows:
        lines += _cell(row.cells[index]).plain.split("\n")
    return max(len(line) for line in lines)


def _cell(cell: Cell) -> Text:
    text = Text(cell.value)
    style = _STYLES[cell.verdict]
    mark = " *" if cell.verdict in ("better", "worse") else ""
    for effect in cell.effects:
        mean = f"{effect.label} {effect.mean}".strip()
        text.append(f"\n{mean}{mark}\n{effect.interval}", style=style)
    return text


def _blocks(table: Table) -> list[RenderableType]:
    """One block of lines a method, for narrow terminals."""
    blocks: list[RenderableType] = []
    for row in table.rows:
        blocks += [
            "",
            Text(row.method, style="bold").append(f"  {row.seeds}", style="not bold dim"),
        ]
        for heading, cell in zip(table.headings, row.cells, strict=True):
            blocks.append(Padding(Text(f"{heading}: {cell.value}"), (0, 0, 0, 2)))
            mark = " *" if cell.verdict in ("better", "worse") else ""
            blocks += [
                Padding(Text(effect.text + mark, style=_STYLES[cell.verdict]), (0, 0, 0, 6))
                for effect in cell.effects
            ]
    return blocks


def _notes(table: Table) -> list[Text]:
    return [Text(note, style="dim") for note in table.notes]


def _needed(grid: RichTable) -> int:
    console = Console(file=io.StringIO(), width=10_000)
    return Measurement.get(console, console.options, grid).minimum
