"""The compiled quantize and dequantize kernels behind the reference's signatures."""

from __future__ import annotations

from types import ModuleType

import torch

_GRIDS = {"uniform": 1, "exponential": 2, "table": 3}
NORMS = {"l2": 1, "linf": 2, "power_of_two": 4, "mean": 5, "unit": 7}


def quantize(
    module: ModuleType,
    vector: torch.Tensor,
    *,
    levels: torch.Tensor,
    grid: str,
    norm: str,
    bucket_size: int,
    bits: int,
    key: int,
    serial: bool,
    buffers: tuple[torch.Tensor, torch.Tensor],
) -> None:
    """Write scales and packed symbols to ``buffers``; see :func:`slimgrad.kernels.quantize`."""
    scales, packed = buffers
    module.quantize(
        vector,
        levels,
        bucket_size,
        bits,
        _GRIDS[grid],
        NORMS[norm],
        key,
        serial,
        scales,
        packed,
    )


def dequantize_into(
    module: ModuleType,
    out: torch.Tensor,
    packed: torch.Tensor,
    scales: torch.Tensor,
    *,
    values: torch.Tensor,
    bits: int,
    bucket_size: int,
    alpha: float | None,
    serial: bool,
) -> torch.Tensor:
    """Writes the vector to ``out``, or adds ``alpha`` times it when ``alpha`` is given.

    ``values`` are the signed levels of all 2**bits symbols.
    """
    module.dequantize(
        packed,
        scales,
        values,
        bucket_size,
        bits,
        alpha is not None,
        1.0 if alpha is None else alpha,
        serial,
        out,
    )
    return out
