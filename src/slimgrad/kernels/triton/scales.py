"""L2 and maximum norms of buckets, with the reference's order of additions."""

from __future__ import annotations

import torch
import triton
import triton.language as tl

from slimgrad.core.errors import ConfigError
from slimgrad.core.registry import unknown_name_message
from slimgrad.kernels.triton.device import check_flat

NORMS = ("l2", "linf")


@triton.jit
def _halved(sums, HALF: tl.constexpr):
    return tl.sum(tl.reshape(sums, (2, HALF)), axis=0)  # of two numbers: no order to choose


@triton.jit
def _tree_sum(sums):
    sums = _halved(_halved(_halved(sums, 32), 16), 8)
    return tl.sum(_halved(_halved(_halved(sums, 4), 2), 1), axis=0)


@triton.jit
def _largest_bits(x, size):
    lane = tl.arange(0, 64)
    largest = tl.zeros((64,), tl.int32)
    for start in range(0, size, 64):
        v = tl.load(x + start + lane, mask=start + lane < size, other=0.0)
        largest = tl.maximum(largest, v.to(tl.int32, bitcast=True) & 0x7FFFFFFF)
    return tl.max(largest, axis=0)


@triton.jit
def _root_of_squares(x, size, factor):
    """Root of the sum of squares of components times a power of two, and the sum."""
    lane = tl.arange(0, 64)
    sums = tl.zeros((64,), tl.float32)
    for start in range(0, size, 64):
        v = tl.load(x + start + lane, mask=start + lane < size, other=0.0)
        y = (v.to(tl.float64) * factor).to(tl.float32)
        sums = sums + y * y
    total = _tree_sum(sums)
    return tl.sqrt_rn(total), total


@triton.jit
def _power_of_two(exponent):
    return ((exponent + 1023).to(tl.int64) << 52).to(tl.float64, bitcast=True)


# Arguments that are 1 would become constants, which have no type to convert.
@triton.jit(do_not_specialize=["n", "bucket_size"])
def _scale_kernel(x, scales, n, bucket_size, L2: tl.constexpr):
    bucket = tl.program_id(0).to(tl.int64)
    first = x + bucket * bucket_size
    size = tl.minimum(n - bucket * bucket_size, bucket_size)
    most = _largest_bits(first, size)
    scale = most.to(tl.float32, bitcast=True)
    if L2:
        root, squares = _root_of_squares(first, size, _power_of_two(tl.zeros((), tl.int32)))
        ordinary = (squares >= 8.271806125530277e-25) & (squares < float("inf"))  # 2**-80
        if not ordinary:
            wide = scale.to(tl.float64).to(tl.int64, bitcast=True)
            exponent = ((wide >> 52) & 0x7FF).to(tl.int32) - 1022
            root, squares = _root_of_squares(first, size, _power_of_two(-exponent))
            norm = root.to(tl.float64) * _power_of_two(exponent)
            root = tl.minimum(norm, 3.4028234663852886e38).to(tl.float32)
        scale = tl.where(most == 0, 0.0, root)
    tl.store(scales + bucket, tl.where(most < 0x7F800000, scale, float("nan")))


def bucket_scales(vector: torch.Tensor, *, norm: str, bucket_size: int) -> torch.Tensor:
    """L2 or maximum norm of every bucket, NaN where a component is not finite.

    Args:
        vector: (n,) float32, contiguous.
        norm: "l2" or "linf".
        bucket_size: components of a bucket, >= 1.

    Returns:
        float32 (ceil(n / bucket_size),), on the device of ``vector``.

    Raises:
        ConfigError: another norm, or a tensor that is not flat float32.
        BackendError: a tensor that is not on a GPU.
    """
    check_flat("vector", vector, torch.float32)
    if norm not in NORMS:
        raise ConfigError(unknown_name_message("norm", norm, NORMS))
    n = vector.numel()
    scales = torch.empty(-(-n // bucket_size), dtype=torch.float32, device=vector.device)
    if n > 0:
        # A fused multiply-add would round once where the reference rounds twice.
        _scale_kernel[(len(scales),)](
            vector, scales, n, bucket_size, L2=norm == "l2", enable_fp_fusion=False
        )
    return scales
