"""One name per operation, with a plain-torch reference and faster implementations."""

from __future__ import annotations

from slimgrad.kernels.packing import pack_symbols, packed_bytes, unpack_symbols
from slimgrad.kernels.positions import (
    centred_row_norms,
    patch_sums,
    position_weight_grad,
    row_norms,
    systematic_sample,
)
from slimgrad.kernels.rounding import dequantize, dequantize_add_, quantize
from slimgrad.kernels.sign_mask import apply_mask, pack_positive
from slimgrad.kernels.topone import topone_weight_grad

__all__ = [
    "apply_mask",
    "centred_row_norms",
    "dequantize",
    "dequantize_add_",
    "pack_positive",
    "pack_symbols",
    "packed_bytes",
    "patch_sums",
    "position_weight_grad",
    "quantize",
    "row_norms",
    "systematic_sample",
    "topone_weight_grad",
    "unpack_symbols",
]
