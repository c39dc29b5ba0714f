"""One name per operation, with a plain-torch reference and faster implementations."""

from __future__ import annotations

from slimgrad.kernels.buckets import bucket_scales, quantize_no_zero, quantize_signs
from slimgrad.kernels.checksum import crc32
from slimgrad.kernels.context import context_decode, context_encode
from slimgrad.kernels.dither import dither, undither, undither_add_
from slimgrad.kernels.packing import pack_symbols, packed_bytes, unpack_symbols
from slimgrad.kernels.rans import rans_decode, rans_encode
from slimgrad.kernels.rotation import (
    rotate_dequantize,
    rotate_dequantize_add_,
    rotate_quantize,
)
from slimgrad.kernels.rounding import dequantize, dequantize_add_, quantize
from slimgrad.kernels.summing import PackedVector, sum_packed_
from slimgrad.kernels.symbol_counts import context_counts, symbol_counts
from slimgrad.kernels.topone import topone_weight_grad

__all__ = [
    "PackedVector",
    "bucket_scales",
    "context_counts",
    "context_decode",
    "context_encode",
    "crc32",
    "dequantize",
    "dequantize_add_",
    "dither",
    "pack_symbols",
    "packed_bytes",
    "quantize",
    "quantize_no_zero",
    "quantize_signs",
    "rans_decode",
    "rans_encode",
    "rotate_dequantize",
    "rotate_dequantize_add_",
    "rotate_quantize",
    "sum_packed_",
    "symbol_counts",
    "topone_weight_grad",
    "undither",
    "undither_add_",
    "unpack_symbols",
]
