"""The 64 bytes at the start of a frame, and every check on them. See docs/wire-format.md."""

from __future__ import annotations

import struct
from dataclasses import dataclass

from slimgrad.comm.codecs import Codec, codec_with_id
from slimgrad.comm.nested_header import check_low_rank, check_sparse, check_zero
from slimgrad.comm.quantizers.base import ROTATION_BLOCK, Transform, symbol_count
from slimgrad.comm.quantizers.level import MAX_BITS, MAX_BUCKET_SIZE, MIN_BITS, magnitudes
from slimgrad.core.errors import FrameError

MAGIC = b"SGRD"
WIRE_VERSION = 2
HEADER_BYTES = 64
MAX_COMPONENTS = 2**40

METHOD_RAW, METHOD_QUANTIZED, METHOD_SPARSE, METHOD_LOW_RANK = 0, 1, 2, 3
GRIDS = {"uniform": 1, "exponential": 2, "table": 3, "no_zero": 4, "integer": 5}
NORM_IDS = {"l2": 1, "linf": 2, "step": 3, "power_of_two": 4, "mean": 5, "projection": 6, "unit": 7}
TRANSFORMS: dict[Transform, int] = {"none": 0, "dither": 1, "rotation": 2}
_TRANSFORM_NAMES: dict[int, Transform] = {number: name for name, number in TRANSFORMS.items()}
MAX_ROTATED_BITS = 4
DTYPE_BYTES = {1: 4, 2: 2, 3: 2, 4: 8}
FLAG_NON_FINITE = 1

_LAYOUT = struct.Struct("<4s8BIQQQQIBB6s")
_CHECKSUM = struct.Struct("<I")
CHECKSUM_OFFSET = _LAYOUT.size
assert CHECKSUM_OFFSET + _CHECKSUM.size == HEADER_BYTES


@dataclass(frozen=True)
class Header:
    """The fields of a frame header, as numbers of the wire.

    Attributes:
        method: 0 for exact values, 1 for quantized ones, 2 for some of the components, 3 for the
            factors of a matrix. The last two use some fields for other things; see the document.
        n: number of components.
        code_id, grid, bits, norm, bucket_size, key, scales_bytes, table_bytes: of a quantized
            frame, 0 in a raw one.
        payload_bytes: length of the last section.
        flags: bit 0 set when some component is not finite.
        dtype: of the values of a raw frame, 0 in a quantized one.
        transform: what follows the look-up of levels; 0 in a raw frame.
    """

    method: int
    n: int
    payload_bytes: int
    flags: int = 0
    code_id: int = 0
    grid: int = 0
    bits: int = 0
    norm: int = 0
    bucket_size: int = 0
    key: int = 0
    scales_bytes: int = 0
    table_bytes: int = 0
    dtype: int = 0
    transform: int = 0

    @property
    def symbols(self) -> int:
        """Symbols in the payload of a quantized frame."""
        return symbol_count(self.n, _TRANSFORM_NAMES[self.transform])

    @property
    def body_bytes(self) -> int:
        """Bytes behind the header: table, scales, payload."""
        return self.table_bytes + self.scales_bytes + self.payload_bytes

    @property
    def frame_bytes(self) -> int:
        """Bytes of the whole frame."""
        return HEADER_BYTES + self.body_bytes

    def pack(self) -> bytes:
        """The first 60 bytes; the checksum follows them.

        >>> len(Header(method=0, n=0, payload_bytes=0, dtype=1).pack())
        60
        """
        return _LAYOUT.pack(
            MAGIC,
            WIRE_VERSION,
            HEADER_BYTES,
            self.method,
            self.code_id,
            self.grid,
            self.bits,
            self.norm,
            self.flags,
            self.bucket_size,
            self.n,
            self.key,
            self.scales_bytes,
            self.payload_bytes,
            self.table_bytes,
            self.dtype,
            self.transform,
            bytes(6),
        )


def read_header(data: bytes, available: int) -> tuple[Header, int]:
    """The header at the start of ``data`` and its checksum, once every field is plausible.

    Args:
        data: at least the first min(64, available) bytes of the frame.
        available: bytes there are in all; a frame that claims more is refused.

    Raises:
        FrameError: a field is out of range, contradicts another, or exceeds ``available``.
    """
    if available < HEADER_BYTES:
        raise FrameError(f"a header takes {HEADER_BYTES} bytes, {available} are there", 0)
    magic, version, header_bytes, *rest = _LAYOUT.unpack_from(data)
    if magic != MAGIC:
        raise FrameError(f"magic {magic!r} is not {MAGIC!r}", 0)
    if version != WIRE_VERSION:
        raise FrameError(f"version {version} is not {WIRE_VERSION}", 4)
    if header_bytes != HEADER_BYTES:
        raise FrameError(f"header size {header_bytes} is not {HEADER_BYTES}", 5)
    method, code_id, grid, bits, norm, flags, bucket_size, n, key, *sizes = rest
    scales_bytes, payload_bytes, table_bytes, dtype, transform, reserved = sizes
    if any(reserved):
        raise FrameError("reserved bytes are not zero", 54)
    if flags & ~FLAG_NON_FINITE:
        raise FrameError(f"flags {flags:#04x} use reserved bits", 11)
    if n > MAX_COMPONENTS:
        raise FrameError(f"{n} components are more than {MAX_COMPONENTS}", 16)
    header = Header(
        method=method,
        n=n,
        payload_bytes=payload_bytes,
        flags=flags,
        code_id=code_id,
        grid=grid,
        bits=bits,
        norm=norm,
        bucket_size=bucket_size,
        key=key,
        scales_bytes=scales_bytes,
        table_bytes=table_bytes,
        dtype=dtype,
        transform=transform,
    )
    if method == METHOD_RAW:
        _check_raw(header)
    elif method == METHOD_QUANTIZED:
        _check_quantized(header)
    elif method == METHOD_SPARSE:
        check_sparse(header)
    elif method == METHOD_LOW_RANK:
        check_low_rank(header)
    else:
        raise FrameError(f"method {method} is not one of 0, 1, 2, 3", 6)
    if header.frame_bytes > available:
        raise FrameError(f"the frame claims {header.frame_bytes} bytes, {available} are there", 40)
    return header, _CHECKSUM.unpack_from(data, CHECKSUM_OFFSET)[0]


def _check_raw(header: Header) -> None:
    check_zero(header, "raw", ("code_id", "grid", "bits", "norm", "bucket_size", "key"))
    check_zero(header, "raw", ("scales_bytes", "table_bytes", "transform"))
    if header.dtype not in DTYPE_BYTES:
        raise FrameError(f"dtype {header.dtype} is not one of {sorted(DTYPE_BYTES)}", 52)
    expected = header.n * DTYPE_BYTES[header.dtype]
    if header.payload_bytes != expected:
        raise FrameError(f"{header.n} values take {expected} bytes, not {header.payload_bytes}", 40)


def _check_quantized(header: Header) -> None:
    if header.grid not in GRIDS.values():
        raise FrameError(f"grid {header.grid} is not one of {sorted(GRIDS.values())}", 8)
    least = MIN_BITS if header.grid != GRIDS["no_zero"] else 1
    if not least <= header.bits <= MAX_BITS:
        raise FrameError(f"bits {header.bits} are not from {least} to {MAX_BITS}", 9)
    if header.norm not in NORM_IDS.values():
        raise FrameError(f"norm {header.norm} is not one of {sorted(NORM_IDS.values())}", 10)
    if not 1 <= header.bucket_size <= MAX_BUCKET_SIZE:
        raise FrameError(f"bucket_size {header.bucket_size} is not from 1 to {MAX_BUCKET_SIZE}", 12)
    if header.dtype != 0:
        raise FrameError(f"dtype {header.dtype} of a quantized frame must be 0", 52)
    if header.transform not in _TRANSFORM_NAMES:
        raise FrameError(f"transform {header.transform} is not one of 0, 1, 2", 53)
    # Dither is subtracted from integers, and integers are what dithered frames hold.
    if (header.transform == TRANSFORMS["dither"]) != (header.grid == GRIDS["integer"]):
        raise FrameError(f"transform {header.transform} does not go with grid {header.grid}", 53)
    if header.transform == TRANSFORMS["rotation"]:
        _check_rotation(header)
    expected = 4 * -(-header.n // header.bucket_size)
    if header.scales_bytes != expected:
        raise FrameError(f"the scales take {expected} bytes, not {header.scales_bytes}", 32)
    _check_table_length(header)
    _check_payload_length(header)


def _check_rotation(header: Header) -> None:
    if header.grid != GRIDS["no_zero"]:
        raise FrameError(f"a rotation does not go with grid {header.grid}", 53)
    if header.bits > MAX_ROTATED_BITS:
        raise FrameError(f"bits {header.bits} of a rotation are not 1 to {MAX_ROTATED_BITS}", 9)
    if header.bucket_size != ROTATION_BLOCK:
        raise FrameError(f"bucket_size {header.bucket_size} of a rotation is not 512", 12)


def _check_table_length(header: Header) -> None:
    most = magnitudes(header.bits)
    if header.grid == GRIDS["table"]:
        if header.table_bytes % 4 or not 1 <= header.table_bytes // 4 <= most:
            raise FrameError(
                f"a table of {header.bits} bits holds 1 to {most} float32, "
                f"not {header.table_bytes} bytes",
                48,
            )
    elif header.grid == GRIDS["no_zero"]:
        if header.table_bytes != 4 * (most + 1):
            raise FrameError(
                f"a table of {header.bits} bits without zero holds {most + 1} float32, "
                f"not {header.table_bytes} bytes",
                48,
            )
    elif header.table_bytes:
        raise FrameError(f"grid {header.grid} has no table", 48)


def codec_of(header: Header) -> Codec:
    """The codec of a quantized frame; FrameError when its number is not known."""
    codec = codec_with_id(header.code_id)
    if codec is None:
        raise FrameError(f"code_id {header.code_id} names no codec", 7)
    return codec


def _check_payload_length(header: Header) -> None:
    least, most = codec_of(header).payload_bounds(header.symbols, header.bits)
    if not least <= header.payload_bytes <= most:
        expected = f"{least}" if least == most else f"{least} to {most}"
        raise FrameError(
            f"{header.symbols} symbols of {header.bits} bits take {expected} bytes, "
            f"not {header.payload_bytes}",
            40,
        )
