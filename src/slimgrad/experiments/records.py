"""What a run measured, as JSON lines: one record a line, flushed as it is written."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

from slimgrad.core.errors import DataError
from slimgrad.experiments.files import write_atomically

Record = dict[str, Any]
FILE_NAME = "records.jsonl"


class RecordWriter:
    """Appends records to a file, each visible to readers at once."""

    def __init__(self, path: Path) -> None:
        path.parent.mkdir(parents=True, exist_ok=True)
        self._file = path.open("a", encoding="utf-8")

    def write(self, kind: str, **fields: Any) -> None:
        """Append one record."""
        self._file.write(json.dumps({"kind": kind, **fields}) + "\n")
        self._file.flush()

    def close(self) -> None:
        """Close the file."""
        self._file.close()


def read_records(path: Path) -> list[Record]:
    """All whole records; a last line cut off by a crash is left out.

    Raises:
        DataError: the file cannot be read, or a line other than the last is no record.
    """
    try:
        text = path.read_text(encoding="utf-8", errors="replace")
    except OSError as error:
        raise DataError(f"cannot read the records {path}: {error.strerror or error}") from None
    lines = text.split("\n")
    records = []
    for number, line in enumerate(lines[:-1], start=1):
        try:
            record = json.loads(line)
        except json.JSONDecodeError as error:
            raise DataError(f"{path}, line {number} is no JSON record ({error})") from None
        records.append(record)
    return records


def keep_records(path: Path, wanted: Callable[[Record], bool]) -> None:
    """Rewrite the file with the records that ``wanted`` accepts, and no cut line."""
    kept = [json.dumps(record) + "\n" for record in read_records(path) if wanted(record)]
    write_atomically(path, lambda file: file.write_text("".join(kept), encoding="utf-8"))
