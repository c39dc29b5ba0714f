"""One name per operation, with a plain-torch reference and faster implementations."""

from __future__ import annotations

from slimgrad.kernels.buckets import bucket_scales, quantize_no_zero, quantize_signs
from slimgrad.kernels.checksum import crc32
from slimgrad.kernels.context import context_decode, context_encode
from slimgrad.kernels.dither import dither, undither, undither_add_
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
from slimgrad.kernels.positions import (
    centred_row_norms,
    patch_sums,
    position_weight_grad,
    row_norms,
    systematic_sample,
)
from slimgrad.kernels.rans import rans_decode, rans_encode
from slimgrad.kernels.rotation import rotate_dequantize, rotate_dequantize_add_, rotate_quantize
from slimgrad.kernels.rounding import dequantize, dequantize_add_, quantize
from slimgrad.kernels.sign_mask import apply_mask, pack_positive
from slimgrad.kernels.summing import PackedVector, sum_packed_
from slimgrad.kernels.symbol_counts import context_counts, symbol_counts
from slimgrad.kernels.thin import thin_product
from slimgrad.kernels.topk import topk_places
from slimgrad.kernels.topone import topone_weight_grad

__all__ = [
    "ELIAS_SEGMENT",
    "HUFFMAN_LIMIT_BITS",
    "PackedVector",
    "apply_mask",
    "bucket_scales",
    "centred_row_norms",
    "context_counts",
    "context_decode",
    "context_encode",
    "crc32",
    "dequantize",
    "dequantize_add_",
    "dither",
    "elias_bytes_bound",
    "elias_decode",
    "elias_encode",
    "huffman_bounds",
    "huffman_count",
    "huffman_decode",
    "huffman_encode",
    "huffman_head_bytes",
    "pack_positive",
    "pack_symbols",
    "packed_bytes",
    "patch_sums",
    "position_weight_grad",
    "quantize",
    "quantize_no_zero",
    "quantize_signs",
    "rans_decode",
    "rans_encode",
    "rotate_dequantize",
    "rotate_dequantize_add_",
    "rotate_quantize",
    "row_norms",
    "sum_packed_",
    "symbol_counts",
    "systematic_sample",
    "thin_product",
    "topk_places",
    "topone_weight_grad",
    "undither",
    "undither_add_",
    "unpack_symbols",
]
