"""Where commands print: text for people, or one JSON value for programs."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from cyclopts import Parameter

from slimgrad.cli.outfolder import is_main_process
from slimgrad.core.errors import ConfigError

if TYPE_CHECKING:
    from contextlib import AbstractContextManager

    from rich.console import Console


# A switch that is off unless it is named.
FLAG = Parameter(negative="", show_default=False)


def print_json(value: Any) -> None:
    """Print ``value`` as the only thing on stdout."""
    print(json.dumps(value, indent=2, allow_nan=False, default=str))


def progress(records: Path, *, resume: bool, json_output: bool) -> AbstractContextManager[Any]:
    """Shows the progress of the run that writes ``records``; on stderr when stdout holds JSON."""
    from contextlib import nullcontext

    from slimgrad.experiments.progress import FollowProgress

    if not is_main_process():
        return nullcontext()
    return FollowProgress(records, console(stderr=json_output), resume=resume)


def console(*, stderr: bool = False) -> Console:
    """A rich console on the present stdout or stderr."""
    from rich.console import Console

    return Console(file=sys.stderr if stderr else sys.stdout, highlight=False)


def print_aligned(heading: Sequence[str], rows: Iterable[Sequence[str]], *, left: int) -> None:
    """Print columns, the first ``left`` of them to the left, the others to the right."""
    table = [tuple(heading), *map(tuple, rows)]
    if any(len(row) != len(heading) for row in table):
        raise ConfigError("every row needs one text for every heading")
    widths = [max(map(len, column)) for column in zip(*table, strict=True)]
    for row in table:
        cells = [
            text.ljust(width) if place < left else text.rjust(width)
            for place, (text, width) in enumerate(zip(row, widths, strict=True))
        ]
        print("  ".join(cells).rstrip())
