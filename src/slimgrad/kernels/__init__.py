"""One name per operation, with a plain-torch reference and faster implementations."""

from __future__ import annotations

from slimgrad.kernels.dither import dither, undither, undither_add_
from slimgrad.kernels.packing import pack_symbols, packed_bytes, unpack_symbols
from slimgrad.kernels.positions import (
    centred_row_norms,
    patch_sums,
    position_weight_grad,
    row_norms,
    systematic_sample,
)
from slimgrad.kernels.rotation import rotate_dequantize, rotate_dequantize_add_, rotate_quantize
from slimgrad.kernels.rounding import dequantize, dequantize_add_, quantize
from slimgrad.kernels.sign_mask import apply_mask, pack_positive
from slimgrad.kernels.summing import PackedVector, sum_packed_
from slimgrad.kernels.topone import topone_weight_grad

__all__ = [
    "PackedVector",
    "apply_mask",
    "centred_row_norms",
    "dequantize",
    "dequantize_add_",
    "dither",
    "pack_positive",
    "pack_symbols",
    "packed_bytes",
    "patch_sums",
    "position_weight_grad",
    "quantize",
    "rotate_dequantize",
    "rotate_dequantize_add_",
    "rotate_quantize",
    "row_norms",
    "sum_packed_",
    "systematic_sample",
    "topone_weight_grad",
    "undither",
    "undither_add_",
    "unpack_symbols",
]
