"""Stochastic rounding to levels of which none is zero, in plain torch."""

from __future__ import annotations

import torch

from slimgrad.kernels.reference.packing import pack_symbols
from slimgrad.kernels.reference.quantize import bucket_scales, fractions_of, round_to_levels, spread
from slimgrad.kernels.reference.rounding_bits import random_bits


def quantize_no_zero(
    vector: torch.Tensor,
    *,
    levels: torch.Tensor,
    norm: str,
    bucket_size: int,
    bits: int,
    key: int,
) -> tuple[torch.Tensor, torch.Tensor]:
    """Scales and packed symbols of a flat float32 ``vector``; 0 symbols where a scale is 0 or NaN.

    A fraction below the smallest level is rounded to plus or minus that level.
    """
    n = len(vector)
    scales = bucket_scales(vector, norm=norm, bucket_size=bucket_size)
    spread_scales = spread(scales, n, bucket_size)
    signed = torch.cat([-levels[:1], levels])
    fractions = fractions_of(vector, spread_scales)
    index = round_to_levels(fractions, random_bits(n, key), levels=signed, grid="table")
    negative = torch.signbit(vector) ^ (index == 0)
    symbols = (index - 1).clamp(min=0) + (negative.long() << (bits - 1))
    symbols = torch.where(spread_scales > 0, symbols, 0)
    return scales, pack_symbols(symbols.to(torch.uint8), bits)
