"""Checks of the headers of frames that hold other frames: sparse and low-rank ones."""

from __future__ import annotations

from typing import TYPE_CHECKING

from slimgrad.comm.places import GAPS, MAX_PARAMETER, STREAM
from slimgrad.core.errors import FrameError

if TYPE_CHECKING:
    from slimgrad.comm.header import Header

MAX_SPARSE_COMPONENTS = 2**32 - 1
MAX_COLUMNS = 2**31 - 1
INNER_HEADER_BYTES = 64
_POSITIONS = {
    "code_id": 7,
    "grid": 8,
    "bits": 9,
    "norm": 10,
    "bucket_size": 12,
    "key": 24,
    "scales_bytes": 32,
    "table_bytes": 48,
    "dtype": 52,
    "transform": 53,
}


def check_zero(header: Header, kind: str, fields: tuple[str, ...]) -> None:
    """FrameError unless ``fields``, which a frame of this kind does not use, are 0."""
    for field in fields:
        if getattr(header, field):
            raise FrameError(f"{field} of a {kind} frame must be 0", _POSITIONS[field])


def check_sparse(header: Header) -> None:
    """FrameError unless the fields of a sparse frame are plausible by themselves."""
    check_zero(header, "sparse", ("grid", "norm", "bucket_size", "table_bytes"))
    check_zero(header, "sparse", ("dtype", "transform"))
    if header.code_id not in (GAPS, STREAM):
        raise FrameError(f"places cannot be coded by {header.code_id}, only by 1 or 2", 7)
    if header.code_id != GAPS:
        check_zero(header, "sparse", ("bits",))
    elif header.bits > MAX_PARAMETER:
        raise FrameError(f"{header.bits} low bits of a gap are more than {MAX_PARAMETER}", 9)
    if header.code_id != STREAM:
        check_zero(header, "sparse", ("key",))
    if header.n > MAX_SPARSE_COMPONENTS:
        raise FrameError(f"{header.n} components of a sparse frame are more than 2**32 - 1", 16)
    if header.code_id == STREAM and header.scales_bytes:
        raise FrameError(f"places of a stream take no bytes, not {header.scales_bytes}", 32)
    _check_inner_bytes(header.payload_bytes, 40)


def check_low_rank(header: Header) -> None:
    """FrameError unless the fields of a low-rank frame are plausible by themselves."""
    unused = ("code_id", "grid", "bits", "norm", "key", "table_bytes", "dtype", "transform")
    check_zero(header, "low-rank", unused)
    if not 1 <= header.bucket_size <= MAX_COLUMNS:
        raise FrameError(f"{header.bucket_size} columns are not from 1 to {MAX_COLUMNS}", 12)
    if header.n % header.bucket_size:
        raise FrameError(f"{header.n} components are no rows of {header.bucket_size}", 16)
    _check_inner_bytes(header.scales_bytes, 32)
    _check_inner_bytes(header.payload_bytes, 40)


def check_kept(header: Header, kept: int) -> None:
    """FrameError unless a sparse frame can hold ``kept`` components."""
    if kept > header.n:
        raise FrameError(f"{kept} kept components are more than all {header.n}", 16)


def check_factors(header: Header, left: int, right: int) -> None:
    """FrameError unless ``left`` and ``right`` numbers are the factors of one matrix."""
    rows, columns = header.n // header.bucket_size, header.bucket_size
    rank = right // columns
    if right != rank * columns or left != rank * rows or rank > min(rows, columns):
        raise FrameError(
            f"{left} and {right} numbers are no factors of a {rows} x {columns} matrix", 16
        )


def _check_inner_bytes(inner_bytes: int, position: int) -> None:
    if inner_bytes < INNER_HEADER_BYTES:
        raise FrameError(f"a frame inside takes 64 bytes at least, not {inner_bytes}", position)
