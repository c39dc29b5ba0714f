"""From a checked frame to values, for every kind of frame."""

from __future__ import annotations

from collections.abc import Sequence

import torch

from slimgrad import kernels
from slimgrad.comm.frame import Frame
from slimgrad.comm.header import (
    GRIDS,
    HEADER_BYTES,
    METHOD_QUANTIZED,
    METHOD_RAW,
    TRANSFORMS,
    codec_of,
)
from slimgrad.comm.quantizers.level import magnitudes
from slimgrad.comm.serial import add_, copy_, zero_
from slimgrad.core.errors import FrameError

_TRANSFORM_NAMES = {number: name for name, number in TRANSFORMS.items()}


def values_of(frame: Frame, *, serial: bool) -> torch.Tensor:
    """The vector, flat float32.

    Raises:
        FrameError: the payload is not what an encoder writes.
    """
    if frame.header.method == METHOD_RAW:
        values = frame.values()
        if values.dtype == torch.float32:
            return values
        return copy_(torch.empty(values.numel(), dtype=torch.float32), values, serial=serial)
    return _dequantize(frame, serial)


def add_values_(frame: Frame, out: torch.Tensor, alpha: float, *, serial: bool) -> torch.Tensor:
    """Add alpha times the vector to ``out``, flat float32 or float64 of the same length.

    Raises:
        FrameError: the payload is not what an encoder writes.
    """
    header = frame.header
    if header.method == METHOD_RAW:
        return add_(out, frame.values(), alpha, serial=serial)
    if out.dtype == torch.float32 and header.transform == TRANSFORMS["rotation"]:
        return kernels.rotate_dequantize_add_(
            out,
            packed_symbols(frame),
            frame.scales,
            levels=frame.levels,
            bits=header.bits,
            key=header.key,
            alpha=alpha,
            serial=serial,
        )
    if out.dtype == torch.float32 and header.transform == TRANSFORMS["dither"]:
        return kernels.undither_add_(
            out,
            packed_symbols(frame),
            frame.scales,
            bits=header.bits,
            bucket_size=header.bucket_size,
            key=header.key,
            alpha=alpha,
            serial=serial,
        )
    if out.dtype != torch.float32 or header.transform != TRANSFORMS["none"]:
        return add_(out, _dequantize(frame, serial), alpha, serial=serial)
    return kernels.dequantize_add_(
        out,
        packed_symbols(frame),
        frame.scales,
        levels=frame.levels,
        bits=header.bits,
        bucket_size=header.bucket_size,
        alpha=alpha,
        serial=serial,
    )


def sum_values_(frames: Sequence[Frame], out: torch.Tensor, *, serial: bool) -> torch.Tensor:
    """Set ``out`` to the sum of the vectors, as adding them to zeros one by one would.

    In one pass where all are quantized and ``out`` is float32, one by one elsewhere.

    Raises:
        FrameError: a payload is not what an encoder writes.
    """
    quantized = all(frame.header.method == METHOD_QUANTIZED for frame in frames)
    if out.dtype == torch.float32 and quantized:
        return kernels.sum_packed_(out, [_packed(frame) for frame in frames], serial=serial)
    zero_(out)
    for frame in frames:
        add_values_(frame, out, 1.0, serial=serial)
    return out


def packed_symbols(frame: Frame) -> torch.Tensor:
    """The symbols of a quantized frame in the lane-sliced layout, each with a level.

    Raises:
        FrameError: the payload is not what the codec writes, or a symbol has no level.
    """
    header = frame.header
    payload_at = HEADER_BYTES + header.table_bytes + header.scales_bytes
    try:
        packed = codec_of(header).decode(frame.payload, header.symbols, header.bits)
    except FrameError as error:
        raise FrameError(error.reason, payload_at + error.position) from error
    if header.grid == GRIDS["table"] and len(frame.levels) - 1 < magnitudes(header.bits):
        most = len(frame.levels) - 1
        symbols = kernels.unpack_symbols(packed, header.symbols, header.bits).numpy()
        if ((symbols & magnitudes(header.bits)) > most).any():
            raise FrameError(f"a symbol names a level above {most}", payload_at)
    return packed


def _dequantize(frame: Frame, serial: bool) -> torch.Tensor:
    header = frame.header
    if header.transform == TRANSFORMS["rotation"]:
        return kernels.rotate_dequantize(
            packed_symbols(frame),
            frame.scales,
            n=header.n,
            levels=frame.levels,
            bits=header.bits,
            key=header.key,
            serial=serial,
        )
    if header.transform == TRANSFORMS["dither"]:
        return kernels.undither(
            packed_symbols(frame),
            frame.scales,
            n=header.n,
            bits=header.bits,
            bucket_size=header.bucket_size,
            key=header.key,
            serial=serial,
        )
    if header.transform != TRANSFORMS["none"]:
        raise FrameError(f"transform {header.transform} is not known", 53)
    return kernels.dequantize(
        packed_symbols(frame),
        frame.scales,
        n=header.n,
        levels=frame.levels,
        bits=header.bits,
        bucket_size=header.bucket_size,
        serial=serial,
    )


def _packed(frame: Frame) -> kernels.PackedVector:
    header = frame.header
    return kernels.PackedVector(
        _TRANSFORM_NAMES[header.transform],
        packed_symbols(frame),
        frame.scales,
        frame.levels,
        header.bits,
        header.bucket_size,
        header.key,
    )
