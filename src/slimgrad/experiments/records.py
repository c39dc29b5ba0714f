"""What a run measured, as JSON lines: one record a line, flushed as it is written."""

from __future__ import annotations

import json
import threading
from collections.abc import Callable
from pathlib import Path
from types import TracebackType
from typing import Any, Self

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
    write_atomically(path, lambda file: file.write_text("".join(kept), encoding="utf-8") and None)


class RecordFollower:
    """Calls ``on_record`` with each record appended to a file, from a thread, until it is left.

    On leaving the ``with`` block what is left is delivered before the block ends.
    """

    _PERIOD_SECONDS = 0.1

    def __init__(self, path: Path, on_record: Callable[[Record], None] | None) -> None:
        self._path = path
        self._on_record = on_record
        self._position = path.stat().st_size if path.exists() else 0
        self._done = threading.Event()
        self._thread = threading.Thread(target=self._follow, name="slimgrad-records", daemon=True)

    def __enter__(self) -> Self:
        if self._on_record is not None:
            self._thread.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._done.set()
        if self._thread.is_alive():
            self._thread.join()
            self._deliver()

    def _follow(self) -> None:
        while not self._done.wait(self._PERIOD_SECONDS):
            self._deliver()

    def _deliver(self) -> None:
        if self._on_record is None or not self._path.exists():
            return
        with self._path.open("rb") as file:
            file.seek(self._position)
            whole, newline, _ = file.read().rpartition(b"\n")
        self._position += len(whole) + len(newline)
        for line in whole.splitlines():
            self._on_record(json.loads(line))
