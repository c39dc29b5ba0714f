"""Follows a file of records while another process appends to it."""

from __future__ import annotations

from pathlib import Path

from slimgrad.experiments.runs import Record, parse_line


class RecordTail:
    """Hands out the records of a growing file, each once, never a half-written one.

    The file may not exist yet; a file that was replaced by a shorter one is read from its start.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        self._offset = 0
        self._rest = b""

    def poll(self) -> list[Record]:
        """The records whose lines were completed since the last call.

        Raises:
            DataError: a completed line is not a record.
        """
        try:
            with self.path.open("rb") as file:
                if file.seek(0, 2) < self._offset:
                    self._offset, self._rest = 0, b""
                file.seek(self._offset)
                added = file.read()
        except FileNotFoundError:
            return []
        self._offset += len(added)
        *whole, self._rest = (self._rest + added).split(b"\n")
        lines = (line.decode("utf-8", errors="replace") for line in whole if line.strip())
        return [parse_line(line, f"a record in {self.path}") for line in lines]
