"""One name per operation, with a plain-torch reference and faster implementations."""

from __future__ import annotations

from slimgrad.kernels.buckets import bucket_scales, quantize_no_zero, quantize_signs
from slimgrad.kernels.dither import dither, undither, undither_add_
from slimgrad.kernels.packing import pack_symbols, packed_bytes, unpack_symbols
from slimgrad.kernels.rotation import (
    rotate_dequantize,
    rotate_dequantize_add_,
    rotate_quantize,
)
from slimgrad.kernels.rounding import dequantize, dequantize_add_, quantize
from slimgrad.kernels.topone import topone_weight_grad

__all__ = [
    "bucket_scales",
    "dequantize",
    "dequantize_add_",
    "dither",
    "pack_symbols",
    "packed_bytes",
    "quantize",
    "quantize_no_zero",
    "quantize_signs",
    "rotate_dequantize",
    "rotate_dequantize_add_",
    "rotate_quantize",
    "topone_weight_grad",
    "undither",
    "undither_add_",
    "unpack_symbols",
]
