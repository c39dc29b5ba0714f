"""What a run measured, as JSON lines: one record a line, flushed as it is written."""

from __future__ import annotations

import contextlib
import json
import math
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from slimgrad.core.errors import DataError
from slimgrad.experiments.files import naming, write_text

Record = dict[str, Any]
FILE_NAME = "records.jsonl"
_REQUIRED = {
    "session": ("methods", "seeds"),
    "progress": ("method", "seed", "step", "steps"),
    "epoch": ("method", "seed", "epoch", "step"),
    "result": ("method", "seed"),
    "warning": ("method", "seed", "text"),
}


class RecordWriter:
    """Appends records to a file, each visible to readers at once."""

    def __init__(self, path: Path) -> None:
        self._path = path
        path.parent.mkdir(parents=True, exist_ok=True)
        self._file = path.open("a", encoding="utf-8")

    def write(self, kind: str, **fields: Any) -> None:
        """Append one record."""
        with naming(self._path):
            self._file.write(_line({"kind": kind, **fields}))
            self._file.flush()

    def close(self) -> None:
        """Close the file."""
        with naming(self._path):
            self._file.close()


def _line(record: Record) -> str:
    """The record as one line; numbers that are not finite, which JSON does not know, are null."""
    known = {
        name: None if isinstance(value, float) and not math.isfinite(value) else value
        for name, value in record.items()
    }
    return json.dumps(known, allow_nan=False) + "\n"


def parse_line(line: str, place: str) -> Record:
    """One record from one line of text.

    Raises:
        DataError: the line is not a record; the text names ``place``.
    """
    try:
        record = json.loads(line)
    except json.JSONDecodeError as error:
        raise DataError(f"{place} is not a JSON record ({error}); the file was altered") from None
    kind = record.get("kind") if isinstance(record, dict) else None
    if not isinstance(kind, str):
        raise DataError(f'{place} has no "kind"; it is not a record of slimgrad')
    missing = [name for name in _REQUIRED.get(kind, ()) if name not in record]
    if missing:
        raise DataError(f"{place} is a {kind} record without {', '.join(missing)}")
    return record


def read_records(path: Path) -> list[Record]:
    """All whole records of a JSON-lines file; a last line cut off by a crash is left out.

    Raises:
        DataError: the file is missing, or a line that is not the last is not a record.
    """
    try:
        text = path.read_text(encoding="utf-8", errors="replace")
    except OSError as error:
        raise DataError(f"cannot read the records {path}: {error.strerror or error}") from None
    lines = text.split("\n")
    whole, rest = lines[:-1], lines[-1]
    records = [
        parse_line(line, f"{path}, line {number}")
        for number, line in enumerate(whole, start=1)
        if line.strip()
    ]
    if rest.strip():
        # A writer was stopped in the middle of a line: its run counts as incomplete.
        with contextlib.suppress(DataError):
            records.append(parse_line(rest, str(path)))
    return records


def write_records(path: Path, records: Iterable[Record]) -> None:
    """Make the file hold ``records`` and nothing else, or leave it as it was."""
    write_text(path, "".join(map(_line, records)))
