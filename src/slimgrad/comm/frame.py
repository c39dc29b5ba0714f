"""One vector as bytes: versioned, self-describing, checksummed; see docs/wire-format.md."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise

import numpy as np
import torch

from slimgrad import kernels
from slimgrad.comm.header import (
    CHECKSUM_OFFSET,
    FLAG_NON_FINITE,
    GRIDS,
    HEADER_BYTES,
    METHOD_LOW_RANK,
    METHOD_QUANTIZED,
    METHOD_RAW,
    METHOD_SPARSE,
    NORM_IDS,
    TRANSFORMS,
    Header,
    read_header,
)
from slimgrad.comm.nested_header import check_factors, check_kept
from slimgrad.comm.places import CodedPlaces
from slimgrad.comm.quantizers.base import Quantized
from slimgrad.comm.quantizers.level import magnitudes
from slimgrad.core.errors import ConfigError, FrameError
from slimgrad.theory import exponential_levels, uniform_levels

_DTYPES = {1: torch.float32, 2: torch.float16, 3: torch.bfloat16, 4: torch.float64}
DTYPE_IDS = {dtype: number for number, dtype in _DTYPES.items()}
# Every bit of the exponent set means infinity or NaN; integers work for bfloat16 in numpy too.
_EXPONENTS = {
    torch.float32: (np.int32, 0x7F800000),
    torch.float16: (np.int16, 0x7C00),
    torch.bfloat16: (np.int16, 0x7F80),
    torch.float64: (np.int64, 0x7FF0000000000000),
}


@dataclass(frozen=True)
class Frame:
    """A decoded frame.

    Attributes:
        header: its fields.
        levels: the magnitudes, ascending; () in a raw frame.
        scales: float32, one a bucket; empty in a raw frame.
        payload: uint8 view of the received bytes; the coded places of a sparse frame.
        inner: the frames inside: the values of a sparse frame, the two factors of a low-rank one.
    """

    header: Header
    levels: tuple[float, ...]
    scales: torch.Tensor
    payload: torch.Tensor
    inner: tuple[Frame, ...] = ()

    @property
    def non_finite(self) -> bool:
        """Whether the sender saw a component that is not finite."""
        return bool(self.header.flags & FLAG_NON_FINITE)

    def values(self) -> torch.Tensor:
        """The values of a raw frame, flat, in the dtype they were sent in."""
        values = torch.empty(self.header.n, dtype=_DTYPES[self.header.dtype])
        _bytes_of(values)[:] = self.payload.numpy()
        return values


def encode_raw(values: torch.Tensor) -> torch.Tensor:
    """A frame of exact values.

    Args:
        values: flat, contiguous; float32, float16, bfloat16 or float64.

    Returns:
        The frame, flat uint8.

    Raises:
        ConfigError: another dtype.

    >>> encode_raw(torch.ones(3)).numel()
    76
    """
    if values.dtype not in DTYPE_IDS:
        raise ConfigError(
            f"a frame holds float32, float16, bfloat16 or float64 values, not {values.dtype}"
        )
    integer, exponent = _EXPONENTS[values.dtype]
    payload = _bytes_of(values)
    non_finite = bool(((payload.view(integer) & integer(exponent)) == exponent).any())
    header = Header(
        method=METHOD_RAW,
        n=values.numel(),
        payload_bytes=len(payload),
        flags=FLAG_NON_FINITE * non_finite,
        dtype=DTYPE_IDS[values.dtype],
    )
    return _assemble(header, payload)


def encode_quantized(quantized: Quantized, payload: torch.Tensor, code_id: int) -> torch.Tensor:
    """A frame of a quantized vector whose symbols codec ``code_id`` wrote as ``payload``."""
    grid = quantized.grid
    sent = {"table": grid.levels[1:], "no_zero": grid.levels}.get(grid.grid, ())
    table = np.array(sent, dtype="<f4").view(np.uint8)
    scales = quantized.scales.numpy().astype("<f4", copy=False)
    header = Header(
        method=METHOD_QUANTIZED,
        n=quantized.n,
        payload_bytes=payload.numel(),
        flags=FLAG_NON_FINITE * bool(np.isnan(scales).any()),
        code_id=code_id,
        grid=GRIDS[grid.grid],
        bits=quantized.bits,
        norm=NORM_IDS[quantized.norm],
        bucket_size=quantized.bucket_size,
        key=quantized.key,
        scales_bytes=scales.nbytes,
        table_bytes=table.nbytes,
        transform=TRANSFORMS[quantized.transform],
    )
    return _assemble(header, table, scales.view(np.uint8), payload.numpy())


def encode_sparse(n: int, key: int, places: CodedPlaces, values: torch.Tensor) -> torch.Tensor:
    """A frame of some of n components; ``values`` is the frame that holds them."""
    header = Header(
        method=METHOD_SPARSE,
        n=n,
        payload_bytes=values.numel(),
        flags=_flags_inside(values),
        code_id=places.coding,
        bits=places.parameter,
        key=key,
        scales_bytes=len(places.section),
    )
    return _assemble(header, places.section, values.numpy())


def encode_low_rank(n: int, columns: int, left: torch.Tensor, right: torch.Tensor) -> torch.Tensor:
    """A frame of a matrix as two factors; ``left`` and ``right`` are the frames that hold them."""
    header = Header(
        method=METHOD_LOW_RANK,
        n=n,
        payload_bytes=right.numel(),
        flags=_flags_inside(left) | _flags_inside(right),
        bucket_size=columns,
        scales_bytes=left.numel(),
    )
    return _assemble(header, left.numpy(), right.numpy())


def decode(data: torch.Tensor) -> Frame:
    """The one frame that ``data`` holds, checked; views of ``data`` where possible.

    Nothing is allocated that the length of ``data`` does not pay for.

    Args:
        data: flat uint8, contiguous, on the CPU.

    Raises:
        FrameError: the bytes are not exactly one valid frame; with the position.
    """
    header, checksum = _header_at(data)
    if header.frame_bytes != data.numel():
        extra = data.numel() - header.frame_bytes
        raise FrameError(f"{extra} bytes follow the frame", header.frame_bytes)
    content = data.numpy()
    found = _checksum(data)
    if found != checksum:
        raise FrameError(f"checksum {found:#010x} is not {checksum:#010x}", CHECKSUM_OFFSET)
    if header.method in (METHOD_SPARSE, METHOD_LOW_RANK):
        return _decode_nested(header, data)
    scales_at = HEADER_BYTES + header.table_bytes
    payload_at = scales_at + header.scales_bytes
    frame = Frame(
        header,
        _levels(header, content[HEADER_BYTES:scales_at]),
        torch.from_numpy(content[scales_at:payload_at].copy().view("<f4").astype(np.float32)),
        data[payload_at:],
    )
    if header.method == METHOD_QUANTIZED:
        _check_scales(frame, scales_at)
    return frame


def split(message: torch.Tensor, count: int) -> list[torch.Tensor]:
    """The ``count`` frames that follow one another in ``message``, still encoded.

    Raises:
        FrameError: there are fewer or more; position counted from the start of the message.
    """
    frames: list[torch.Tensor] = []
    start = 0
    for _ in range(count):
        rest = message[start:]
        try:
            length = _header_at(rest)[0].frame_bytes
        except FrameError as error:
            reason = f"frame {len(frames) + 1} of {count}: {error.reason}"
            raise FrameError(reason, start + error.position) from error
        frames.append(rest[:length])
        start += length
    if start != message.numel():
        raise FrameError(f"{message.numel() - start} bytes follow the {count} frames", start)
    return frames


def _header_at(data: torch.Tensor) -> tuple[Header, int]:
    if not isinstance(data, torch.Tensor):
        raise FrameError(f"a frame is a flat uint8 tensor, not {type(data).__name__}", 0)
    flat_bytes = data.dtype == torch.uint8 and data.dim() == 1 and data.is_contiguous()
    if not flat_bytes or data.device.type != "cpu":
        raise FrameError(
            "a frame is a flat contiguous uint8 tensor on the CPU, "
            f"not {data.dtype} {tuple(data.shape)} on {data.device}",
            0,
        )
    return read_header(data[:HEADER_BYTES].numpy().tobytes(), data.numel())


def _decode_nested(header: Header, data: torch.Tensor) -> Frame:
    payload_at = HEADER_BYTES + header.scales_bytes
    first, last = data[HEADER_BYTES:payload_at], data[payload_at:]
    if header.method == METHOD_SPARSE:
        inner = (_decode_inner(last, payload_at),)
        check_kept(header, inner[0].header.n)
        payload = first
    else:
        inner = (_decode_inner(first, HEADER_BYTES), _decode_inner(last, payload_at))
        check_factors(header, inner[0].header.n, inner[1].header.n)
        payload = data[:0]
    frame = Frame(header, (), torch.empty(0), payload, inner)
    if frame.non_finite != any(part.non_finite for part in inner):
        raise FrameError("the non-finite flag contradicts the frames inside", 11)
    return frame


def _decode_inner(data: torch.Tensor, position: int) -> Frame:
    try:
        _check_flat(data)
        return decode(data)
    except FrameError as error:
        raise FrameError(f"frame inside: {error.reason}", position + error.position) from error


def _check_flat(data: torch.Tensor) -> None:
    if _header_at(data)[0].method not in (METHOD_RAW, METHOD_QUANTIZED):
        raise FrameError("it holds frames itself", 6)


def _flags_inside(frame: torch.Tensor) -> int:
    return _header_at(frame)[0].flags


def _bytes_of(values: torch.Tensor) -> np.ndarray:
    # An empty tensor may have strides that torch does not view as bytes.
    values = values.detach() if values.numel() else torch.empty(0)
    return values.view(torch.uint8).numpy()


def _assemble(header: Header, *sections: np.ndarray) -> torch.Tensor:
    frame = torch.empty(header.frame_bytes, dtype=torch.uint8)
    content = frame.numpy()
    content[:CHECKSUM_OFFSET] = np.frombuffer(header.pack(), dtype=np.uint8)
    position = HEADER_BYTES
    for section in sections:
        content[position : position + len(section)] = section
        position += len(section)
    content[CHECKSUM_OFFSET:HEADER_BYTES].view("<u4")[0] = _checksum(frame)
    return frame


def _checksum(frame: torch.Tensor) -> int:
    return kernels.crc32(frame[HEADER_BYTES:], kernels.crc32(frame[:CHECKSUM_OFFSET]))


def _levels(header: Header, table: np.ndarray) -> tuple[float, ...]:
    if header.grid == GRIDS["uniform"]:
        return uniform_levels(magnitudes(header.bits))
    if header.grid == GRIDS["exponential"]:
        return exponential_levels(magnitudes(header.bits) - 1)
    if header.grid == GRIDS["integer"]:
        return tuple(float(j) for j in range(magnitudes(header.bits) + 1))
    if header.method != METHOD_QUANTIZED:
        return ()
    sent = tuple(float(level) for level in table.copy().view("<f4"))
    levels = (0.0, *sent)
    if levels[-1] != 1.0 or not all(a < b for a, b in pairwise(levels)):
        raise FrameError("the level table does not ascend from 0 to 1", HEADER_BYTES)
    return sent if header.grid == GRIDS["no_zero"] else levels


def _check_scales(frame: Frame, position: int) -> None:
    scales = frame.scales.numpy()
    missing = np.isnan(scales)
    bad = ~missing & ~((scales >= 0) & (scales <= np.finfo(np.float32).max))
    if bad.any():
        first = int(bad.argmax())
        raise FrameError(
            f"scale {float(scales[first])} is neither NaN nor finite and >= 0", position + 4 * first
        )
    if bool(missing.any()) != frame.non_finite:
        raise FrameError("the non-finite flag contradicts the scales", 11)
