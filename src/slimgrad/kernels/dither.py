"""Subtractive dither: argument checks and choice of implementation."""

from __future__ import annotations

import torch

from slimgrad.core.errors import ConfigError
from slimgrad.kernels.backend import native_module
from slimgrad.kernels.checks import (
    check_bits,
    check_bucket_size,
    check_key,
    check_size,
    check_sum_target,
    check_vector,
    note_change,
)
from slimgrad.kernels.native import dither as native
from slimgrad.kernels.packing import packed_bytes, quantized_buffers
from slimgrad.kernels.reference import dither as reference

LEAST_BITS = 2  # a sign and a magnitude


def dither(
    vector: torch.Tensor,
    *,
    step_rms: float,
    bits: int,
    bucket_size: int,
    key: int,
    serial: bool = False,
    out: tuple[torch.Tensor, torch.Tensor] | None = None,
) -> tuple[torch.Tensor, torch.Tensor]:
    """Rounds each component, shifted by a known random part of a step, to an integer of steps.

    k_i = round(v_i / step + u_i) with u_i uniform in (-1/2, 1/2) and
    step = max(step_rms * rms, max|v| / m) over each bucket, m = 2**(bits - 1) - 1. The receiver
    draws u again and takes it off: step (k_i - u_i).

    Unbiased, and the error does not depend on v: uniform in (-step / 2, step / 2), of variance
    step**2 / 12, up to the resolution 2**-16 of u. Every backend, instruction set and number of
    threads gives the same bytes. A bucket with an infinity or NaN gets step NaN and decodes to NaN.

    Args:
        vector: (n,) float32 on the CPU, n >= 0; a strided one is copied.
        step_rms: least step over the root mean square of the bucket; finite, above 0.
        bits: width of a symbol, 2 to 8, sign included.
        bucket_size: components that share a step, >= 1; multiples of 512 are fastest.
        key: random stream, in [0, 2**64).
        serial: use the calling thread only.
        out: contiguous tensors of the forms below to write to; None for new ones.

    Returns:
        Steps, float32 (ceil(n / bucket_size),), and symbols, uint8 (packed_bytes(n, bits),). The
        least step is float32's smallest normal number, or 0 for a bucket of zeros.

    Raises:
        ConfigError: an argument outside the ranges above.

    >>> v = torch.tensor([3.0, -4.0])
    >>> steps, packed = dither(v, step_rms=0.5, bits=4, bucket_size=2, key=0)
    >>> bool(steps[0] == 0.5 * v.square().mean().sqrt())
    True
    >>> error = undither(packed, steps, n=2, bits=4, bucket_size=2, key=0) - v
    >>> bool((error.abs() <= steps / 2).all())
    True

    References:
        Schuchman (1964), "Dither signals and their effect on quantization noise".
    """
    check_vector("vector", vector, torch.float32)
    check_bits(bits, LEAST_BITS)
    check_bucket_size(bucket_size)
    check_key(key)
    if not 0 < step_rms <= torch.finfo(torch.float32).max:
        raise ConfigError(f"step_rms must be above 0 and finite in float32, got {step_rms!r}")
    vector = vector.detach().contiguous()
    buffers = quantized_buffers(len(vector), bits, bucket_size, out)
    module = native_module()
    if module is None:
        found = reference.dither(
            vector, step_rms=step_rms, bits=bits, bucket_size=bucket_size, key=key
        )
        for buffer, part in zip(buffers, found, strict=True):
            buffer.copy_(part)
        return buffers
    native.dither(
        module,
        vector,
        step_rms=step_rms,
        bits=bits,
        bucket_size=bucket_size,
        key=key,
        serial=serial,
        buffers=buffers,
    )
    return buffers


def undither(
    packed: torch.Tensor,
    steps: torch.Tensor,
    *,
    n: int,
    bits: int,
    bucket_size: int,
    key: int,
    serial: bool = False,
) -> torch.Tensor:
    """The vector that dither packed: step (k - u), component by component.

    Args:
        packed: uint8 (packed_bytes(n, bits),) on the CPU.
        steps: float32 (ceil(n / bucket_size),) on the CPU.
        n: components, >= 0.
        bits: width of a symbol, 2 to 8, sign included.
        bucket_size: as given to dither.
        key: as given to dither.
        serial: use the calling thread only.

    Returns:
        float32 (n,). Products beyond float32 become its largest number.

    Raises:
        ConfigError: sizes that do not agree, or an argument outside its range.

    >>> packed = torch.zeros(1, dtype=torch.uint8)
    >>> value = undither(packed, torch.ones(1), n=2, bits=4, bucket_size=2, key=0)
    >>> bool((value.abs() < 0.5).all())
    True
    """
    _check_packed(packed, steps, n, bits, bucket_size, key)
    packed, steps = packed.contiguous(), steps.detach().contiguous()
    module = native_module()
    if module is None:
        return reference.undither(packed, steps, n=n, bits=bits, bucket_size=bucket_size, key=key)
    return native.undither_into(
        module,
        torch.empty(n, dtype=torch.float32),
        packed,
        steps,
        bits=bits,
        bucket_size=bucket_size,
        key=key,
        alpha=None,
        serial=serial,
    )


def undither_add_(
    out: torch.Tensor,
    packed: torch.Tensor,
    steps: torch.Tensor,
    *,
    bits: int,
    bucket_size: int,
    key: int,
    alpha: float = 1.0,
    serial: bool = False,
) -> torch.Tensor:
    """Adds ``alpha`` times the dithered vector to ``out`` in one pass.

    Equal to the last bit to ``out.add_(alpha * undither(...))``.

    Args:
        out: (n,) float32, contiguous, on the CPU; changed in place.
        packed: uint8 (packed_bytes(n, bits),).
        steps: float32 (ceil(n / bucket_size),).
        bits: as given to dither.
        bucket_size: as given to dither.
        key: as given to dither.
        alpha: factor, rounded to float32; finite.
        serial: use the calling thread only.

    Returns:
        ``out``.

    Raises:
        ConfigError: sizes that do not agree, or an argument outside its range.

    >>> steps, packed = dither(torch.ones(2), step_rms=0.01, bits=8, bucket_size=2, key=0)
    >>> undither_add_(torch.ones(2), packed, steps, bits=8, bucket_size=2, key=0).round(decimals=1)
    tensor([2., 2.])
    """
    check_sum_target(out, alpha)
    _check_packed(packed, steps, len(out), bits, bucket_size, key)
    packed, steps = packed.contiguous(), steps.detach().contiguous()
    module = native_module()
    if module is None:
        return reference.undither_add_(
            out, packed, steps, bits=bits, bucket_size=bucket_size, key=key, alpha=alpha
        )
    native.undither_into(
        module,
        out,
        packed,
        steps,
        bits=bits,
        bucket_size=bucket_size,
        key=key,
        alpha=alpha,
        serial=serial,
    )
    note_change(out)
    return out


def _check_packed(
    packed: torch.Tensor, steps: torch.Tensor, n: int, bits: int, bucket_size: int, key: int
) -> None:
    """Checks what a decoder is given."""
    check_bits(bits, LEAST_BITS)
    check_bucket_size(bucket_size)
    check_key(key)
    check_size("packed", packed, torch.uint8, packed_bytes(n, bits))
    check_size("steps", steps, torch.float32, -(-n // bucket_size))
