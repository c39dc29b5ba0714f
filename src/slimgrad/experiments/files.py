"""Files that are whole or absent, and checksums to tell whether one was altered."""

from __future__ import annotations

import hashlib
import json
import os
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import safetensors.torch
import torch

_CHUNK_BYTES = 1 << 20


def write_atomically(path: Path, write: Callable[[Path], object]) -> None:
    """Make ``path`` hold what ``write`` puts into the file it is given, or leave it as it was.

    The content is on the disk before the name changes over, so a crash at any moment leaves
    either the old file or the new one. An OSError names ``path``.

    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     target = Path(folder) / "note.txt"
    ...     write_atomically(target, lambda temporary: temporary.write_text("whole"))
    ...     target.read_text(), len(list(target.parent.iterdir()))
    ('whole', 1)
    """
    with naming(path):
        path.parent.mkdir(parents=True, exist_ok=True)
        handle, name = tempfile.mkstemp(prefix=f".{path.name}.", suffix=".tmp", dir=path.parent)
        os.close(handle)
        temporary = Path(name)
        try:
            write(temporary)
            _sync(temporary)
            temporary.chmod(0o644)
            temporary.replace(path)
            _sync(path.parent)
        finally:
            temporary.unlink(missing_ok=True)


def write_text(path: Path, text: str) -> None:
    """Make ``path`` hold ``text`` in UTF-8, or leave it as it was."""
    write_atomically(path, lambda file: file.write_text(text, encoding="utf-8"))


def write_tensors(path: Path, tensors: dict[str, torch.Tensor], metadata: dict[str, str]) -> None:
    """Make ``path`` a safetensors file, or leave it as it was."""
    # Not save_file: it tells a full disk as an error of its own, without the operating system's.
    content = safetensors.torch.save(tensors, metadata)
    write_atomically(path, lambda file: file.write_bytes(content))


@contextmanager
def naming(path: Path) -> Iterator[None]:
    """Let an OSError name ``path``: of a full disk Python does not say which file met it."""
    try:
        yield
    except OSError as error:
        raise OSError(error.errno, error.strerror or str(error), str(path)) from error


def _sync(path: Path) -> None:
    handle = os.open(path, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


def file_checksum(path: Path, algorithm: str = "sha256") -> str:
    """Hexadecimal digest of a file's content, read in pieces."""
    digest = hashlib.new(algorithm, usedforsecurity=False)
    with path.open("rb") as file:
        while piece := file.read(_CHUNK_BYTES):
            digest.update(piece)
    return digest.hexdigest()


def read_tensors(path: Path) -> tuple[dict[str, torch.Tensor], dict[str, str]]:
    """Tensors and metadata of a safetensors file.

    Read, not mapped: a mapped file that is cut short later ends the process with a bus error.

    Raises:
        SafetensorError, OSError, ValueError: the file is missing or no safetensors file.
    """
    content = path.read_bytes()
    tensors = safetensors.torch.load(content)
    header_bytes = int.from_bytes(content[:8], "little")
    header = json.loads(content[8 : 8 + header_bytes])
    return tensors, header.get("__metadata__", {})


def tensor_bytes(tensor: torch.Tensor) -> memoryview:
    """The bytes of a CPU tensor in row-major order, for checksums.

    >>> bytes(tensor_bytes(torch.tensor([65, 66], dtype=torch.uint8)))
    b'AB'
    """
    return tensor.detach().contiguous().reshape(-1).view(torch.uint8).numpy().data


def slug(text: str) -> str:
    """``text`` as a file name: lower-case letters, digits and single dashes.

    >>> slug("NUQSGD, 4 bits")
    'nuqsgd-4-bits'
    """
    words = "".join(c if c.isascii() and c.isalnum() else " " for c in text.lower()).split()
    return "-".join(words) or "run"
