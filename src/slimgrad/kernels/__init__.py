"""One name per operation, with a plain-torch reference and faster implementations."""

from __future__ import annotations

from slimgrad.kernels.packing import pack_symbols, packed_bytes, unpack_symbols
from slimgrad.kernels.rounding import dequantize, dequantize_add_, quantize
from slimgrad.kernels.thin import thin_product
from slimgrad.kernels.topk import topk_places
from slimgrad.kernels.topone import topone_weight_grad

__all__ = [
    "dequantize",
    "dequantize_add_",
    "pack_symbols",
    "packed_bytes",
    "quantize",
    "thin_product",
    "topk_places",
    "topone_weight_grad",
    "unpack_symbols",
]
