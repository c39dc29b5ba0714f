"""Stochastic rounding of a vector to a few levels of its buckets' norms, in plain torch.

Every operation is one float32 operation, rounded on its own, in a fixed order: whatever else
implements this must give the same bytes.
"""

from __future__ import annotations

import math

import torch

from slimgrad.kernels.reference.magnitude_scales import (
    NORM_LANES,
    mean_magnitudes,
    power_of_two_above,
    sum_in_lanes,
)
from slimgrad.kernels.reference.packing import pack_symbols, packed_bytes, unpack_symbols
from slimgrad.kernels.reference.rounding_bits import random_bits

__all__ = [
    "bucket_scales",
    "dequantize",
    "dequantize_add_",
    "fractions_of",
    "pack_symbols",
    "packed_bytes",
    "quantize",
    "random_bits",
    "round_to_levels",
    "signed_levels",
    "spread",
    "unpack_symbols",
]

_LARGEST = torch.finfo(torch.float32).max
_POWERS_OF_TWO = torch.tensor([math.ldexp(1.0, k) for k in range(-160, 161)], dtype=torch.float64)


def quantize(
    vector: torch.Tensor,
    *,
    levels: torch.Tensor,
    grid: str,
    norm: str,
    bucket_size: int,
    bits: int,
    key: int,
) -> tuple[torch.Tensor, torch.Tensor]:
    """Scales (float32, one a bucket) and packed symbols (uint8) of a flat float32 ``vector``."""
    n = len(vector)
    scales = bucket_scales(vector, norm=norm, bucket_size=bucket_size)
    fractions = fractions_of(vector, spread(scales, n, bucket_size))
    if grid == "uniform":
        fractions = torch.copysign(fractions, vector)
    indices = round_to_levels(fractions, random_bits(n, key), levels=levels, grid=grid)
    negative = torch.signbit(vector) & (indices != 0)
    symbols = indices.abs() + (negative.long() << (bits - 1))
    return scales, pack_symbols(symbols.to(torch.uint8), bits)


def dequantize(
    packed: torch.Tensor,
    scales: torch.Tensor,
    *,
    n: int,
    levels: torch.Tensor,
    bits: int,
    bucket_size: int,
) -> torch.Tensor:
    """The float32 vector (n,) the symbols stand for: scale times signed level."""
    values = signed_levels(levels, bits)[unpack_symbols(packed, n, bits).long()]
    return spread(scales, n, bucket_size) * values


def dequantize_add_(
    out: torch.Tensor,
    packed: torch.Tensor,
    scales: torch.Tensor,
    *,
    levels: torch.Tensor,
    bits: int,
    bucket_size: int,
    alpha: float,
) -> torch.Tensor:
    """Adds alpha times the vector to ``out`` in place; the product and the sum round one by one."""
    value = dequantize(
        packed, scales, n=len(out), levels=levels, bits=bits, bucket_size=bucket_size
    )
    return out.add_(value if alpha == 1.0 else value * alpha)


def signed_levels(levels: torch.Tensor, bits: int) -> torch.Tensor:
    """The value of every symbol, float32 (2**bits,); NaN for magnitudes that have no level."""
    half = levels.new_full((1 << (bits - 1),), math.nan)
    half[: len(levels)] = levels
    return torch.cat([half, -half])


def bucket_scales(vector: torch.Tensor, *, norm: str, bucket_size: int) -> torch.Tensor:
    """What ``norm`` names of every bucket; NaN where a component is not finite."""
    width = min(bucket_size, max(len(vector), 1))
    width_padded = -(-width // NORM_LANES) * NORM_LANES
    whole = torch.nn.functional.pad(vector, (0, -len(vector) % width)).view(-1, width)
    rows = torch.nn.functional.pad(whole, (0, width_padded - width))
    largest = rows.abs().amax(1)
    if norm == "linf":
        return torch.where(largest.isfinite(), largest, math.nan)
    if norm == "unit":
        return torch.where(largest.isfinite(), 1.0, math.nan)
    if norm == "power_of_two":
        return power_of_two_above(largest)
    if norm == "mean":
        lengths = (len(vector) - torch.arange(len(rows)) * width).clamp(max=width)
        return mean_magnitudes(rows, lengths, largest)
    squares = _sum_of_squares(rows)
    scales = _square_root(squares)
    careful = ~((squares >= 2.0**-80) & (squares < math.inf))
    if careful.any():
        scales[careful] = _careful_l2(rows[careful], largest[careful])
    return scales


def round_to_levels(
    fractions: torch.Tensor, random: torch.Tensor, *, levels: torch.Tensor, grid: str
) -> torch.Tensor:
    """Level index (int64) of each fraction in [0, 1], up or down at random without bias.

    Indices of the uniform grid have the sign of the fraction, which may be negative.
    The chance to go up is the distance to the level below over the gap, to the nearest 2**-16.
    """
    m = len(levels) - 1
    if grid == "uniform":
        fixed = torch.round(fractions * (m * 65536.0)).to(torch.int64)
        return (fixed + random) >> 16
    if grid == "exponential":
        smallest = levels[1]
        small = fractions < smallest
        shifted = torch.where(small, fractions + smallest, fractions)
        carried = shifted.view(torch.int32).long() + (random << 7) + 64
        return (carried >> 23) - (127 - (m - 1)) + (~small).long()
    gaps = levels[1:].double() - levels[:-1].double()
    inverse_gaps = (1.0 / gaps).to(torch.float32)
    below = torch.bucketize(fractions, levels[1:-1].contiguous(), right=True)
    chance = (fractions - levels[below]) * inverse_gaps[below]
    return below + (random.to(torch.float32) + 0.5 < chance * 65536.0).long()


def spread(scales: torch.Tensor, n: int, bucket_size: int) -> torch.Tensor:
    """The scale of each component's bucket, (n,)."""
    return scales[torch.arange(n) // bucket_size]


def fractions_of(vector: torch.Tensor, norms: torch.Tensor) -> torch.Tensor:
    """|x| / norm, at most 1; 0 where the norm is 0 or NaN. Scaled first so nothing overflows."""
    pre = torch.ones_like(norms)
    pre[norms < 2.0**-100] = 2.0**100
    pre[norms > 2.0**100] = 2.0**-100
    inverse = torch.ones_like(norms) / (norms * pre)
    fractions = ((vector.abs() * pre) * inverse).clamp(max=1.0)
    return torch.where(norms > 0, fractions, 0.0)


def _sum_of_squares(rows: torch.Tensor) -> torch.Tensor:
    return sum_in_lanes(rows * rows)


def _square_root(x: torch.Tensor) -> torch.Tensor:
    """Correctly rounded; torch's own float32 root may be off by one unit in the last place."""
    return x.double().sqrt().to(torch.float32)


def _careful_l2(rows: torch.Tensor, largest: torch.Tensor) -> torch.Tensor:
    """L2 norm of rows whose squares leave float32: divided by a power of two and multiplied back.

    Never more than the largest float32; a norm above the true maximum keeps rounding unbiased.
    """
    finite = largest.isfinite()
    exponents = torch.frexp(torch.where(finite, largest, 1.0))[1].long()
    down = _POWERS_OF_TWO[160 - exponents][:, None]
    roots = _square_root(_sum_of_squares((rows.double() * down).float()))
    norms = (roots.double() * _POWERS_OF_TWO[160 + exponents]).clamp(max=_LARGEST).float()
    norms = torch.where(largest == 0, 0.0, norms)
    return torch.where(finite, norms, math.nan)
