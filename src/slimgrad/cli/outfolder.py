"""The folder a command writes to: never shared, never overwritten.

A folder that already holds a run is emptied into ``earlier/1``, ``earlier/2``, ... inside it, so the
newest result is always at the same place and no older one is lost. If the new run fails before it
has written a record, the older one is put back.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from slimgrad.core.errors import ConfigError

RECORDS = "records.jsonl"
EARLIER = "earlier"


def is_main_process() -> bool:
    """Whether this process writes and prints: all but those torchrun started with another rank."""
    return os.environ.get("RANK", "0") == "0" or "WORLD_SIZE" not in os.environ


@contextmanager
def own_folder(out: Path, *, resume: bool) -> Iterator[None]:
    """Hold ``out`` for one run, with room made for a new one unless ``resume``.

    Raises:
        ConfigError: ``out`` is a file, holds something that is no run, or is in use.
    """
    if not is_main_process():
        yield
        return
    if out.exists() and not out.is_dir():
        raise ConfigError(f"--out {out}: is a file; name a folder")
    with _created(out), _locked(out):
        entries = _entries(out)
        if entries and not (out / RECORDS).exists():
            raise ConfigError(
                f"--out {out}: holds files that are no run of slimgrad, such as {entries[0].name}; "
                "name a new or empty folder"
            )
        if resume or not entries:
            yield
        else:
            with _set_aside(out, entries):
                yield


def write_whole(path: Path, text: str) -> None:
    """Make ``path`` hold ``text``, or leave it as it was."""
    temporary = path.with_name(f".{path.name}.tmp")
    try:
        temporary.write_text(text, encoding="utf-8")
        temporary.replace(path)
    finally:
        temporary.unlink(missing_ok=True)


def _entries(out: Path) -> list[Path]:
    return sorted(entry for entry in out.iterdir() if entry.name != EARLIER)


@contextmanager
def _created(out: Path) -> Iterator[None]:
    """Make the folder, and take it away again if it is still empty at the end."""
    made = [folder for folder in (out, *out.parents) if not folder.exists()]
    out.mkdir(parents=True, exist_ok=True)
    try:
        yield
    finally:
        for folder in made:
            if any(folder.iterdir()):
                break
            folder.rmdir()


@contextmanager
def _locked(out: Path) -> Iterator[None]:
    """Keep other slimgrad processes out of a folder; a crash releases it too."""
    try:
        import fcntl
    except ImportError:  # Windows has no such locks
        yield
        return
    handle = os.open(out, os.O_RDONLY)
    try:
        try:
            fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            raise ConfigError(f"--out {out}: another slimgrad process is writing there") from None
        yield
    finally:
        os.close(handle)


@contextmanager
def _set_aside(out: Path, entries: list[Path]) -> Iterator[None]:
    """Move ``entries`` out of the way, for good once a new record has been written."""
    taken = [int(p.name) for p in (out / EARLIER).glob("*") if p.name.isdecimal()]
    aside = out / EARLIER / str(max(taken, default=0) + 1)
    aside.mkdir(parents=True)
    for entry in entries:
        entry.rename(aside / entry.name)
    try:
        yield
    finally:
        if (out / RECORDS).exists():
            print(f"slimgrad: the run that {out} held is now in {aside}", file=sys.stderr)
        else:
            _put_back(out, aside)


def _put_back(out: Path, aside: Path) -> None:
    for entry in list(aside.iterdir()):
        if not (out / entry.name).exists():
            entry.rename(out / entry.name)
    for folder in (aside, aside.parent):
        if not any(folder.iterdir()):
            folder.rmdir()
