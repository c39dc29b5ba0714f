"""One name per operation, with a plain-torch reference and faster implementations."""

from __future__ import annotations

from slimgrad.kernels.elias import ELIAS_SEGMENT, elias_bytes_bound, elias_decode, elias_encode
from slimgrad.kernels.huffman import (
    HUFFMAN_LIMIT_BITS,
    huffman_bounds,
    huffman_count,
    huffman_decode,
    huffman_encode,
    huffman_head_bytes,
)
from slimgrad.kernels.packing import pack_symbols, packed_bytes, unpack_symbols
from slimgrad.kernels.rounding import dequantize, dequantize_add_, quantize
from slimgrad.kernels.topone import topone_weight_grad

__all__ = [
    "ELIAS_SEGMENT",
    "HUFFMAN_LIMIT_BITS",
    "dequantize",
    "dequantize_add_",
    "elias_bytes_bound",
    "elias_decode",
    "elias_encode",
    "huffman_bounds",
    "huffman_count",
    "huffman_decode",
    "huffman_encode",
    "huffman_head_bytes",
    "pack_symbols",
    "packed_bytes",
    "quantize",
    "topone_weight_grad",
    "unpack_symbols",
]
