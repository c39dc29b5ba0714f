"""Signs as symbols of one bit, in plain torch."""

from __future__ import annotations

import torch

from slimgrad.kernels.reference.packing import pack_symbols
from slimgrad.kernels.reference.quantize import bucket_scales, spread


def quantize_signs(
    vector: torch.Tensor, *, norm: str, bucket_size: int
) -> tuple[torch.Tensor, torch.Tensor]:
    """Scales and one bit a component, 1 for minus; 0 where a scale is 0 or NaN."""
    scales = bucket_scales(vector, norm=norm, bucket_size=bucket_size)
    kept = spread(scales, len(vector), bucket_size) > 0
    return scales, pack_symbols((torch.signbit(vector) & kept).to(torch.uint8), 1)
