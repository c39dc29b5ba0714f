"""The folder a command writes to: held by one process at a time, never one with other files.

What an earlier run left in it is set aside when the new one begins, into ``earlier-1``,
``earlier-2``, ..., so the newest result is always at the same place and no older one is lost.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from slimgrad.core.errors import ConfigError

RECORDS = "records.jsonl"
_EARLIER = "earlier-"


def is_main_process() -> bool:
    """Whether this process prints and writes: every one but ranks above 0 of a torchrun launch."""
    return "WORLD_SIZE" not in os.environ or os.environ.get("RANK", "0") == "0"


@contextmanager
def own_folder(out: Path) -> Iterator[None]:
    """Hold ``out`` for one run; a folder that is still empty at the end is removed again.

    Raises:
        ConfigError: ``out`` is no folder, holds something that is no run, or is in use.
    """
    if not is_main_process():
        yield
        return
    with _created(out), _locked(out):
        names = sorted(entry.name for entry in out.iterdir())
        foreign = [name for name in names if not name.startswith(_EARLIER)]
        if foreign and RECORDS not in names:
            raise ConfigError(
                f"--out {out}: holds files that are no run of slimgrad, such as {foreign[0]}; "
                "name a new or empty folder"
            )
        yield


@contextmanager
def _created(out: Path) -> Iterator[None]:
    missing = [folder for folder in (out, *out.parents) if not folder.exists()]
    try:
        out.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise ConfigError(f"--out {out}: cannot be made a folder ({error.strerror})") from None
    try:
        yield
    finally:
        for folder in missing:
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
