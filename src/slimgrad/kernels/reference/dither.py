"""Subtractive dither in plain torch: a vector as integers times a step, with known random errors.

Every operation is one float32 operation, rounded on its own, in a fixed order: whatever else
implements this must give the same bytes.
"""

from __future__ import annotations

import math

import torch

from slimgrad.kernels.reference.packing import pack_symbols, unpack_symbols
from slimgrad.kernels.reference.quantize import bucket_scales
from slimgrad.kernels.reference.rounding_bits import random_bits

HEADROOM = 1.0 + 2.0**-20  # more than the roundings on the way to an integer
_SMALLEST = torch.finfo(torch.float32).tiny
_LARGEST = torch.finfo(torch.float32).max


def dither(
    vector: torch.Tensor, *, step_rms: float, bits: int, bucket_size: int, key: int
) -> tuple[torch.Tensor, torch.Tensor]:
    """Steps (float32, one a bucket) and packed symbols (uint8) of a flat float32 ``vector``."""
    n = len(vector)
    steps = bucket_steps(vector, step_rms=step_rms, bits=bits, bucket_size=bucket_size)
    fixed = _fixed_point(vector, _spread(steps, n, bucket_size))
    integers = (fixed + random_bits(n, key)) >> 16
    symbols = integers.abs() + ((integers < 0).long() << (bits - 1))
    return steps, pack_symbols(symbols.to(torch.uint8), bits)


def undither(
    packed: torch.Tensor, steps: torch.Tensor, *, n: int, bits: int, bucket_size: int, key: int
) -> torch.Tensor:
    """The float32 vector (n,) the symbols stand for: step times (integer - dither)."""
    symbols = unpack_symbols(packed, n, bits).long()
    magnitudes = symbols & ((1 << (bits - 1)) - 1)
    integers = torch.where(symbols >> (bits - 1) == 1, -magnitudes, magnitudes)
    # k - u with u = (r + 1/2) / 2**16 - 1/2, over 2**-17: below 2**24, so exact in float32.
    doubled = (integers << 17) - 2 * random_bits(n, key) + 65535
    values = doubled.to(torch.float32) * 2.0**-17 * _spread(steps, n, bucket_size)
    return torch.where(values.isnan(), values, values.clamp(-_LARGEST, _LARGEST))


def undither_add_(
    out: torch.Tensor,
    packed: torch.Tensor,
    steps: torch.Tensor,
    *,
    bits: int,
    bucket_size: int,
    key: int,
    alpha: float,
) -> torch.Tensor:
    """Adds alpha times the vector to ``out`` in place; the product and the sum round one by one."""
    value = undither(packed, steps, n=len(out), bits=bits, bucket_size=bucket_size, key=key)
    return out.add_(value if alpha == 1.0 else value * alpha)


def bucket_steps(
    vector: torch.Tensor, *, step_rms: float, bits: int, bucket_size: int
) -> torch.Tensor:
    """max(step_rms * rms, max / m) of every bucket, m the largest magnitude of a symbol.

    0 for a bucket of zeros, NaN for one that is not finite, else within float32's normal numbers.
    """
    n = len(vector)
    norms = bucket_scales(vector, norm="l2", bucket_size=bucket_size)
    largest = bucket_scales(vector, norm="linf", bucket_size=bucket_size)
    counts = [min(bucket_size, n - first) for first in range(0, n, bucket_size)]
    of_norm = torch.tensor([step_rms / math.sqrt(count) for count in counts], dtype=torch.float32)
    of_largest = torch.tensor(HEADROOM / ((1 << (bits - 1)) - 1), dtype=torch.float32)
    steps = torch.maximum(norms * of_norm, largest * of_largest).clamp(_SMALLEST, _LARGEST)
    return torch.where(largest == 0, 0.0, torch.where(largest.isnan(), math.nan, steps))


def _fixed_point(vector: torch.Tensor, steps: torch.Tensor) -> torch.Tensor:
    """Components over their steps with 16 bits behind the point, int64; 0 where there is no step.

    Scaled first so that nothing overflows.
    """
    pre = torch.ones_like(steps)
    pre[steps < 2.0**-100] = 2.0**100
    pre[steps > 2.0**100] = 2.0**-100
    inverse = torch.ones_like(steps) / (steps * pre) * 65536
    fixed = torch.where(steps > 0, vector * pre * inverse, 0.0)
    return torch.round(fixed).to(torch.int64)


def _spread(steps: torch.Tensor, n: int, bucket_size: int) -> torch.Tensor:
    """The step of each component's bucket, (n,)."""
    return steps[torch.arange(n) // bucket_size]
