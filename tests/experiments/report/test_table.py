from __future__ import annotations

import io

import pytest
import sample_records as samples
from rich.console import Console

from slimgrad.experiments.report.cells import table_of
from slimgrad.experiments.report.table import plain_table, rich_table
from slimgrad.experiments.summary import summarize_records


def _rendered(width: int, *, seeds: tuple[int, ...] = (1, 2, 3), color: bool = False) -> str:
    summary = summarize_records(samples.records(seeds=seeds))
    written = io.StringIO()
    console = Console(
        file=written,
        width=width,
        color_system="standard" if color else None,
        force_terminal=color,
        highlight=False,
    )
    console.print(rich_table(summary, width))
    return written.getvalue()


def test_plain_table_shows_means_intervals_and_marks() -> None:
    text = plain_table(summarize_records(samples.records()))
    lines = text.splitlines()
    assert lines[1].split() == [
        *("method", "accuracy,", "%", "ms", "total", "time,", "s", "component", "%"),
    ]
    topone = next(line for line in lines if line.startswith("topone  "))
    assert topone.split() == ["topone", "96.83", "±", "0.36", "35.8", "±", "0.4", "10.7", "±",
                              "0.1", "32.00", "26.2"]  # fmt: skip
    assert "[−0.88, +0.18]" in text
    assert "saved 10.5 % *" in text
    assert "gain 11.8 % *" in text
    assert "−27.94 *" in text
    assert "every seed" in text
    assert "\x1b" not in text


def test_plain_table_marks_no_difference_without_an_interval() -> None:
    text = plain_table(summarize_records(samples.records(seeds=(1,))))
    table, _, notes = text.partition("\n\nValues are")
    assert "no interval" in table
    assert "One seed gives no interval" in notes
    # Only what is counted, not measured, is marked: bits and multiply-adds.
    assert "−27.94 *" in table
    assert "% *" not in table


@pytest.mark.parametrize("width", [80, 100, 140])
def test_the_grid_fits_its_terminal(width: int) -> None:
    text = _rendered(width)
    assert max(len(line.rstrip()) for line in text.splitlines()) <= width
    assert "time per step" in text.splitlines()[0]


@pytest.mark.parametrize("width", [40, 60, 79])
def test_narrow_terminals_get_one_block_a_method_with_all_numbers(width: int) -> None:
    text = _rendered(width)
    assert max(len(line.rstrip()) for line in text.splitlines()) <= width
    for fact in ("topone+nuqsgd", "accuracy, %: 96.83 ± 0.36", "saved 10.5 % [6.8, 14.1] *"):
        assert fact in text


def test_colours_follow_the_verdict() -> None:
    text = _rendered(140, color=True)
    assert "\x1b[32msaved 10.5 % *" in text
    assert "\x1b[31m−1.08 *" in text
    assert "\x1b[31m−0.35" not in text


def test_incomplete_runs_are_noted() -> None:
    records = samples.records(("exact", "topone"), (1, 2))
    records = [r for r in records if (r.get("method"), r.get("seed")) != ("topone", 2)]
    text = plain_table(summarize_records(records))
    assert "Attention: topone, seed 2: never started." in text
    assert "1 of 2 seeds" in text


def test_without_exact_the_table_says_so() -> None:
    table = table_of(summarize_records(samples.records(("topone",), (1, 2))))
    assert "no exact run" in " ".join(table.notes)
    assert table.rows[0].cells[0].effects == ()


@pytest.mark.parametrize(
    ("seconds", "unit"), [(0.0004, "ms"), (0.04, "ms"), (4.0, "s"), (4000.0, "min")]
)
def test_times_have_a_unit_that_suits_them(seconds: float, unit: str) -> None:
    records = samples.records(("exact",), (1, 2))
    for record in records:
        if record["kind"] == "result":
            record["total_seconds"] = seconds
    assert f"total time, {unit}" in table_of(summarize_records(records)).headings


def test_a_quantity_nobody_has_is_shown_as_absent() -> None:
    records = samples.records(("exact",), (1, 2))
    for record in records:
        record.pop("bits_per_component", None)
    assert table_of(summarize_records(records)).rows[0].cells[3].value == "–"


def test_long_names_are_broken_not_cut() -> None:
    name = "top-1 every 4th layer+nuqsgd at four bits"
    records = samples.records(("exact", "topone"), (1, 2))
    for record in records:
        if record.get("method") == "topone":
            record["method"] = name
    records[0]["methods"][1] = name
    written = io.StringIO()
    Console(file=written, width=80).print(rich_table(summarize_records(records), 80))
    first_column = " ".join(line[:13].strip() for line in written.getvalue().splitlines())
    for word in name.replace("+", " ").split():
        assert word in first_column
