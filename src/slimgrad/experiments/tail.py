"""Follows a file of records while another process appends to it."""

from __future__ import annotations

from pathlib import Path

from slimgrad.experiments.records import Record, parse_line


class RecordTail:
    """Hands out the records of a growing file, each once, never a half-written one.

    Args:
        path: the file; it may not exist yet, and may be replaced by another one.
        skip_present: leave out the file that is there now, and wait for the one that replaces it.
    """

    def __init__(self, path: Path, *, skip_present: bool = False) -> None:
        self.path = path
        self._skipped = _identity(path) if skip_present else None
        self._identity: tuple[int, int] | None = None
        self._offset = 0
        self._rest = b""

    def poll(self) -> tuple[list[Record], bool]:
        """Records completed since the last call, and whether they are the first of another file.

        Raises:
            DataError: a completed line is not a record.
        """
        identity = _identity(self.path)
        if identity is None or identity == self._skipped:
            return [], False
        replaced = identity != self._identity
        if replaced:
            self._identity, self._offset, self._rest = identity, 0, b""
        with self.path.open("rb") as file:
            file.seek(self._offset)
            added = file.read()
        self._offset += len(added)
        *whole, self._rest = (self._rest + added).split(b"\n")
        lines = (line.decode("utf-8", errors="replace") for line in whole if line.strip())
        return [parse_line(line, f"a record in {self.path}") for line in lines], replaced


def _identity(path: Path) -> tuple[int, int] | None:
    """What tells a file from another one of the same name."""
    try:
        found = path.stat()
    except FileNotFoundError:
        return None
    return found.st_dev, found.st_ino
