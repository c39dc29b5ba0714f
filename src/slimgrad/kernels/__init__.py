"""One name per operation, with a plain-torch reference and faster implementations."""

from __future__ import annotations

from slimgrad.kernels.quantize import (
    dequantize,
    dequantize_add_,
    pack_symbols,
    packed_bytes,
    quantize,
    unpack_symbols,
)
from slimgrad.kernels.topone import topone_weight_grad

__all__ = [
    "dequantize",
    "dequantize_add_",
    "pack_symbols",
    "packed_bytes",
    "quantize",
    "topone_weight_grad",
    "unpack_symbols",
]
