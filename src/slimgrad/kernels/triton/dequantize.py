"""Symbols unpacked, turned into values and added to what is there."""

from __future__ import annotations

import torch
import triton
import triton.language as tl

from slimgrad.kernels.reference import packing, quantize
from slimgrad.kernels.triton.device import check_flat
from slimgrad.kernels.triton.packing import BLOCK, components, load_block, rest_of, whole_blocks


# Arguments that are 1 would become constants, which have no type to convert.
@triton.jit(do_not_specialize=["n", "bucket_size"])
def _add_kernel(out, packed, tail, scales, values, n, bucket_size, alpha, BITS: tl.constexpr):
    block = tl.program_id(0)
    e = components(block)
    inside = e < n
    if block < n // 512:
        symbols = load_block(packed, block, BITS)
    else:
        symbols = tl.load(tail + e % 512, mask=inside, other=0).to(tl.int32)
    scale = tl.load(scales + e // bucket_size, mask=inside, other=0.0)
    value = scale * tl.load(values + symbols)
    tl.store(out + e, tl.load(out + e, mask=inside) + value * alpha, mask=inside)


def dequantize_add_(
    out: torch.Tensor,
    packed: torch.Tensor,
    scales: torch.Tensor,
    *,
    levels: torch.Tensor,
    bits: int,
    bucket_size: int,
    alpha: float = 1.0,
) -> torch.Tensor:
    """Adds ``alpha`` times the packed vector to ``out``: ``slimgrad.kernels.dequantize_add_``.

    Args:
        out: (n,) float32, contiguous; changed in place.
        packed: uint8 (packed_bytes(n, bits),), on the device of ``out``.
        scales: float32 (ceil(n / bucket_size),), on the device of ``out``.
        levels: float32, ascending from 0 or above, on the device of ``out``.
        bits: width of a symbol, 1 to 8.
        bucket_size: components that share a scale, >= 1.
        alpha: factor.

    Returns:
        ``out``.

    Raises:
        ConfigError: tensors that are not flat or of another dtype.
        BackendError: tensors that are not on a GPU.
    """
    check_flat("out", out, torch.float32)
    check_flat("packed", packed, torch.uint8)
    check_flat("scales", scales, torch.float32)
    n = out.numel()
    if n == 0:
        return out
    rest = packing.unpack_symbols(rest_of(packed, n, bits).cpu(), n % BLOCK, bits)
    _add_kernel[(-(-n // BLOCK),)](
        out,
        whole_blocks(packed, n, bits),
        rest.to(out.device),
        scales,
        quantize.signed_levels(levels, bits),
        n,
        bucket_size,
        alpha,
        BITS=bits,
        enable_fp_fusion=False,
    )
    return out
