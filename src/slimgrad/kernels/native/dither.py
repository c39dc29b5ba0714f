"""The compiled dither kernels behind the reference's signatures."""

from __future__ import annotations

from types import ModuleType

import torch

from slimgrad.kernels.reference.packing import packed_bytes


def dither(
    module: ModuleType,
    vector: torch.Tensor,
    *,
    step_rms: float,
    bits: int,
    bucket_size: int,
    key: int,
    serial: bool,
) -> tuple[torch.Tensor, torch.Tensor]:
    """Steps and packed symbols of ``vector``; see :func:`slimgrad.kernels.dither`."""
    n = len(vector)
    steps = torch.empty(-(-n // bucket_size), dtype=torch.float32)
    packed = torch.empty(packed_bytes(n, bits), dtype=torch.uint8)
    module.dither(vector, step_rms, bits, bucket_size, key, serial, steps, packed)
    return steps, packed


def undither_into(
    module: ModuleType,
    out: torch.Tensor,
    packed: torch.Tensor,
    steps: torch.Tensor,
    *,
    bits: int,
    bucket_size: int,
    key: int,
    alpha: float | None,
    serial: bool,
) -> torch.Tensor:
    """Writes the vector to ``out``, or adds ``alpha`` times it when ``alpha`` is given."""
    factor = 1.0 if alpha is None else alpha
    module.undither(packed, steps, bits, bucket_size, key, alpha is not None, factor, serial, out)
    return out
