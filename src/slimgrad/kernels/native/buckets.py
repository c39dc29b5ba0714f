"""The compiled bucket kernels behind the reference's signatures."""

from __future__ import annotations

from types import ModuleType

import torch

from slimgrad.kernels.native.quantize import NORMS
from slimgrad.kernels.reference.packing import packed_bytes


def bucket_scales(
    module: ModuleType, vector: torch.Tensor, *, norm: str, bucket_size: int, serial: bool
) -> torch.Tensor:
    """Scales of ``vector``; see :func:`slimgrad.kernels.bucket_scales`."""
    scales = _empty_scales(vector, bucket_size)
    module.bucket_scales(vector, bucket_size, NORMS[norm], serial, scales)
    return scales


def quantize_signs(
    module: ModuleType, vector: torch.Tensor, *, norm: str, bucket_size: int, serial: bool
) -> tuple[torch.Tensor, torch.Tensor]:
    """Scales and packed signs; see :func:`slimgrad.kernels.quantize_signs`."""
    scales = _empty_scales(vector, bucket_size)
    packed = torch.empty(packed_bytes(len(vector), 1), dtype=torch.uint8)
    module.quantize_signs(vector, bucket_size, NORMS[norm], serial, scales, packed)
    return scales, packed


def quantize_no_zero(
    module: ModuleType,
    vector: torch.Tensor,
    *,
    levels: torch.Tensor,
    norm: str,
    bucket_size: int,
    bits: int,
    key: int,
    serial: bool,
) -> tuple[torch.Tensor, torch.Tensor]:
    """Scales and packed symbols; see :func:`slimgrad.kernels.quantize_no_zero`."""
    scales = _empty_scales(vector, bucket_size)
    packed = torch.empty(packed_bytes(len(vector), bits), dtype=torch.uint8)
    signed = torch.cat([-levels[:1], levels])
    module.quantize_no_zero(
        vector, signed, bucket_size, bits, NORMS[norm], key, serial, scales, packed
    )
    return scales, packed


def _empty_scales(vector: torch.Tensor, bucket_size: int) -> torch.Tensor:
    return torch.empty(-(-len(vector) // bucket_size), dtype=torch.float32)
