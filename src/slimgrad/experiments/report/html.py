"""The report of a comparison: one HTML file that needs nothing else."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from slimgrad.experiments.records import Record, read_records
from slimgrad.experiments.report import svg
from slimgrad.experiments.report.cells import table_of
from slimgrad.experiments.report.figures import all_figures
from slimgrad.experiments.report.reading import overall, readings
from slimgrad.experiments.runs import RecordedComparison, collect, finite
from slimgrad.experiments.summary import Summary, summarize

_TITLE = "Gradient methods compared"
_SEED_COLUMNS = (
    ("final accuracy, %", "final_accuracy", 100, 2),
    ("best accuracy, %", "best_accuracy", 100, 2),
    ("time per step, ms", "seconds_per_step", 1000, 2),
    ("training time, s", "total_seconds", 1, 2),
    ("bits per component", "bits_per_component", 1, 3),
    ("MACs saved, %", "saved_macs_share", 100, 2),
    ("steps", "steps", 1, 0),
)
# Parts of the session record that have a place of their own in the report.
_SHOWN_ELSEWHERE = {
    *("kind", "command", "config", "data", "hardware", "methods", "reference", "seeds", "versions")
}


def report_from_file(records: Path) -> str:
    """The report for a records file, as HTML text; DataError when the file cannot be read."""
    comparison = collect(read_records(records))
    return report_html(comparison, summarize(comparison))


def report_html(comparison: RecordedComparison, summary: Summary) -> str:
    """The report as HTML text.

    The page loads nothing: styles and figures are inside it, and there is no script. Every name
    and value from the records is escaped.
    """
    import jinja2
    from markupsafe import Markup

    environment = jinja2.Environment(
        loader=jinja2.PackageLoader("slimgrad.experiments.report", "templates"),
        autoescape=True,
        undefined=jinja2.StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    session = comparison.session
    figures = [
        {"name": figure.name, "caption": figure.caption, "svg": Markup(figure.svg)}
        for figure in all_figures(comparison, summary)
    ]
    other = {key: value for key, value in session.items() if key not in _SHOWN_ELSEWHERE}
    return environment.get_template("report.html.j2").render(
        title=_title(session),
        series=list(zip(svg.LIGHT, svg.DARK, strict=True)),
        command=_command(session),
        summary=summary,
        overall=overall(summary),
        readings=readings(summary),
        table=table_of(summary),
        figures=figures,
        seed_columns=[heading for heading, *_ in _SEED_COLUMNS],
        seed_rows=list(_seed_rows(comparison)),
        facts=[
            (heading, rows)
            for heading, rows in (
                ("Data", list(flatten(session.get("data"), "source"))),
                ("Software", list(flatten(session.get("versions", {})))),
                ("Hardware", list(flatten(session.get("hardware", {})))),
                ("Configuration", list(flatten(session.get("config", {})))),
                ("Further records", list(flatten(other))),
            )
            if rows
        ],
        config_json=json.dumps(session.get("config", {}), indent=2, ensure_ascii=False),
    )


def flatten(value: Any, prefix: str = "") -> Iterator[tuple[str, str]]:
    """Nested settings as (dotted name, text) rows.

    >>> list(flatten({"data": {"name": "digits"}, "seeds": [1, 2]}))
    [('data.name', 'digits'), ('seeds', '1, 2')]
    """
    if isinstance(value, dict):
        for key, inner in value.items():
            yield from flatten(inner, f"{prefix}.{key}" if prefix else str(key))
    elif isinstance(value, list) and any(isinstance(item, dict | list) for item in value):
        for index, inner in enumerate(value, start=1):
            label = inner.get("name", index) if isinstance(inner, dict) else index
            yield from flatten(inner, f"{prefix}[{label}]")
    elif isinstance(value, list):
        yield prefix, ", ".join(str(item) for item in value)
    elif value is not None and value != "":
        yield prefix, str(value)


def _command(session: Record) -> str:
    command = str(session.get("command", ""))
    return f"slimgrad {command}" if command and " " not in command else command


def _title(session: Record) -> str:
    config = session.get("config") or {}
    names = []
    for key in ("model", "data"):
        value = config.get(key)
        names.append(value.get("name") if isinstance(value, dict) else value)
    known = [str(name) for name in names if name]
    return f"{_TITLE}: {' on '.join(known)}" if known else _TITLE


def _seed_rows(comparison: RecordedComparison) -> Iterator[tuple[str, int, list[str], str]]:
    """(method, seed, texts, digest) of every planned run."""
    for (method, seed), run in comparison.runs.items():
        result = run.result or {}
        texts = []
        for _, field, factor, decimals in _SEED_COLUMNS:
            value = finite(result.get(field))
            texts.append("–" if value is None else f"{value * factor:.{decimals}f}")
        yield method, seed, texts, str(result.get("parameters_sha256", ""))[:12]
