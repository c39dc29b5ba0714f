"""The compiled rotating kernels behind the reference's signatures."""

from __future__ import annotations

from types import ModuleType

import torch

from slimgrad.kernels.reference.packing import BLOCK, packed_bytes
from slimgrad.kernels.reference.rotation import RotationGrid


def rotate_quantize(
    module: ModuleType, vector: torch.Tensor, grid: RotationGrid, key: int, *, serial: bool
) -> tuple[torch.Tensor, torch.Tensor]:
    """Scales and packed symbols; see :func:`slimgrad.kernels.rotate_quantize`."""
    blocks = -(-len(vector) // BLOCK)
    scales = torch.empty(blocks, dtype=torch.float32)
    packed = torch.empty(packed_bytes(blocks * BLOCK, grid.bits), dtype=torch.uint8)
    module.rotate_quantize(
        vector, grid.levels, grid.cells, grid.bits, grid.spread, key, serial, scales, packed
    )
    return scales, packed


def rotate_dequantize_into(
    module: ModuleType,
    out: torch.Tensor,
    packed: torch.Tensor,
    scales: torch.Tensor,
    *,
    values: torch.Tensor,
    bits: int,
    key: int,
    alpha: float | None,
    serial: bool,
) -> torch.Tensor:
    """Writes the vector to ``out``, or adds ``alpha`` times it when ``alpha`` is given.

    ``values`` are the signed levels of all 2**bits symbols.
    """
    module.rotate_dequantize(
        packed,
        scales,
        values,
        bits,
        key,
        alpha is not None,
        1.0 if alpha is None else alpha,
        serial,
        out,
    )
    return out
