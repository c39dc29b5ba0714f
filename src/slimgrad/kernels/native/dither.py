"""The compiled dither kernels behind the reference's signatures."""

from __future__ import annotations

from types import ModuleType

import torch


def dither(
    module: ModuleType,
    vector: torch.Tensor,
    *,
    step_rms: float,
    bits: int,
    bucket_size: int,
    key: int,
    serial: bool,
    buffers: tuple[torch.Tensor, torch.Tensor],
) -> None:
    """Write steps and packed symbols to ``buffers``; see :func:`slimgrad.kernels.dither`."""
    steps, packed = buffers
    module.dither(vector, step_rms, bits, bucket_size, key, serial, steps, packed)


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
