"""``slimgrad compare``: several methods, several paired seeds, one table, one report."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

from slimgrad.cli.options import given, named, parse_seeds
from slimgrad.cli.outfolder import RECORDS, is_main_process, own_folder
from slimgrad.cli.output import FLAG, console, print_json, progress
from slimgrad.core.errors import ConfigError
from slimgrad.core.registry import unknown_name_message

if TYPE_CHECKING:
    from slimgrad.experiments.config import CompareConfig
    from slimgrad.experiments.summary import Summary


def compare(
    *,
    recipe: str | None = None,
    config: Path | None = None,
    methods: str | None = None,
    seeds: str | None = None,
    epochs: int | None = None,
    workers: int | None = None,
    data_dir: Path | None = None,
    out: Path | None = None,
    resume: Annotated[bool, FLAG] = False,
    json: Annotated[bool, FLAG] = False,
) -> int:
    """Train one network with several methods and say which differ, and whether it pays.

    Every method runs with the same seeds, hence the same start and the same order of the data.
    Prints one table and writes OUT/records.jsonl, OUT/summary.json and OUT/report.html. What
    OUT already holds is moved to OUT/earlier-1, earlier-2, ...; no result is overwritten.

    Args:
        recipe: Name of a built-in comparison, such as digits.
        config: TOML file with a comparison of your own.
        methods: Only these methods, separated by commas; the exact run is always kept.
        seeds: Seeds, as 0,1,2 or 0-4.
        epochs: Passes over the training data.
        workers: Worker processes.
        data_dir: File or folder the data set is read from.
        out: Folder to write to.
        resume: Do only what OUT does not hold yet.
        json: Print the summary as JSON on stdout and nothing else there.
    """
    options = given(
        seeds=None if seeds is None else parse_seeds(seeds),
        epochs=epochs,
        workers=workers,
        out=out,
        resume=resume or None,
    )
    settings = load_comparison(recipe, config, methods, data_dir, options)
    records = Path(settings.out) / RECORDS
    with own_folder(Path(settings.out)):
        with progress(records, resume=settings.resume, json_output=json):
            from slimgrad.experiments import compare as comparing  # slow to load

            comparing.compare(settings)
        if not is_main_process():
            return 0
        summary = write_results(records)
    if json:
        from slimgrad.experiments.summary import to_jsonable

        out_paths = {"out": str(settings.out), "report": str(records.with_name("report.html"))}
        print_json({**out_paths, "summary": to_jsonable(summary)})
    else:
        _show(summary, records)
    return 1 if any(not method.finished_seeds for method in summary.methods) else 0


def load_comparison(
    recipe: str | None,
    config: Path | None,
    methods: str | None,
    data_dir: Path | None,
    options: dict[str, Any],
) -> CompareConfig:
    """The validated settings of a comparison.

    Raises:
        ConfigError: not exactly one of recipe and config, or a wrong setting.
    """
    if (recipe is None) == (config is None):
        raise ConfigError(
            "name one comparison: --recipe NAME for a built-in one, or --config FILE, not both"
        )
    from slimgrad.experiments import config as configuring
    from slimgrad.experiments.toml import read_toml

    path = config if config is not None else configuring.recipe_path(recipe or "")
    base = named(read_toml(path), "data", None, path=data_dir)
    settings = configuring.CompareConfig(**{**base, **options})
    if methods is None:
        return settings
    chosen = choose([method.name for method in settings.methods], methods)
    kept = [m for m in settings.methods if m.is_exact or m.name in chosen]
    return settings.replace(methods=kept)


def choose(names: list[str], wanted: str) -> set[str]:
    """The names that ``wanted`` lists, separated by commas.

    Raises:
        ConfigError: one is unknown, then the text names the nearest; or there is none.

    >>> sorted(choose(["exact", "topone", "nuqsgd"], "topone, nuqsgd"))
    ['nuqsgd', 'topone']
    """
    if wanted in names:
        return {wanted}
    chosen = {piece.strip() for piece in wanted.split(",") if piece.strip()}
    if not chosen:
        raise ConfigError(f"--methods {wanted!r}: names no method; allowed: {', '.join(names)}")
    for name in sorted(chosen):
        if name not in names:
            raise ConfigError(unknown_name_message("method", name, names))
    return chosen


def write_results(records: Path) -> Summary:
    """Write summary.json and report.html beside the records; the summary."""
    from slimgrad.experiments.files import write_text
    from slimgrad.experiments.records import read_records
    from slimgrad.experiments.report.html import report_html
    from slimgrad.experiments.runs import collect
    from slimgrad.experiments.summary import summarize, to_json

    comparison = collect(read_records(records))
    summary = summarize(comparison)
    write_text(records.with_name("summary.json"), to_json(summary) + "\n")
    write_text(records.with_name("report.html"), report_html(comparison, summary))
    return summary


def _show(summary: Summary, records: Path) -> None:
    from slimgrad.experiments.report.reading import overall
    from slimgrad.experiments.report.table import plain_table, rich_table

    screen = console()
    if screen.is_terminal:
        screen.print()
        screen.print(rich_table(summary, screen.width))
    else:
        print("\n" + plain_table(summary), end="")
    print(f"\n{overall(summary)}")
    print(f"\nreport: {records.with_name('report.html')}")
