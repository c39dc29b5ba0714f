"""Scales of buckets that are no norms: a power of two, the mean magnitude, one."""

from __future__ import annotations

import math

import torch

NORM_LANES = 64
_LARGEST = torch.finfo(torch.float32).max
_MANTISSA = 0x7FFFFF


def power_of_two_above(largest: torch.Tensor) -> torch.Tensor:
    """The least power of two >= each float32 maximum; the maximum itself where there is none.

    >>> power_of_two_above(torch.tensor([0.0, 3.0, 4.0, 3e38])).tolist()[:3]
    [0.0, 4.0, 4.0]
    """
    bits = largest.view(torch.int32).long()
    up = (bits + _MANTISSA) & ~_MANTISSA
    mantissa, exponent = torch.frexp(bits.double())
    denormal = torch.ldexp(torch.ones_like(mantissa), exponent - (mantissa == 0.5).to(torch.int32))
    up = torch.where(bits <= _MANTISSA, torch.where(bits > 0, denormal.long(), 0), up)
    up = torch.where(up < 0x7F800000, up, bits)
    scales = up.to(torch.int32).view(torch.float32)
    return torch.where(largest.isfinite(), scales, math.nan)


def mean_magnitudes(
    rows: torch.Tensor, lengths: torch.Tensor, largest: torch.Tensor
) -> torch.Tensor:
    """Mean |x| of each row of 64 k components, of which the first ``lengths`` count.

    Sums in 64 lanes in ascending order, then a tree; again with components times 2**-64 where the
    plain sum leaves float32.
    """
    count = lengths.to(torch.float32)
    sums = sum_in_lanes(rows.abs())
    means = sums / count
    careful = ~(sums < math.inf)
    if careful.any():
        small = sum_in_lanes(rows[careful].abs() * 2.0**-64) / count[careful]
        wide = (small.double() * 2.0**64).clamp(max=_LARGEST).to(torch.float32)
        means[careful] = torch.where(largest[careful].isfinite(), wide, math.nan)
    return means


def sum_in_lanes(rows: torch.Tensor) -> torch.Tensor:
    """Sum of each row of 64 k components: 64 lanes in ascending order, then a tree over lanes."""
    lanes = rows.new_zeros(len(rows), NORM_LANES)
    for part in rows.split(NORM_LANES, dim=1):
        lanes = lanes + part
    while lanes.shape[1] > 1:
        half = lanes.shape[1] // 2
        lanes = lanes[:, :half] + lanes[:, half:]
    return lanes[:, 0]
