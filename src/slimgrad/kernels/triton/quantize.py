"""Stochastic rounding to levels and packing; norms are taken by a kernel before it."""

from __future__ import annotations

import torch
import triton
import triton.language as tl

from slimgrad.core.errors import ConfigError
from slimgrad.core.registry import unknown_name_message
from slimgrad.kernels.reference.packing import pack_symbols, packed_bytes
from slimgrad.kernels.triton.device import check_flat
from slimgrad.kernels.triton.packing import BLOCK, components, rest_of, store_block, whole_blocks
from slimgrad.kernels.triton.random_bits import random_bits, signed_key
from slimgrad.kernels.triton.scales import bucket_scales

GRIDS = {"uniform": 1, "exponential": 2, "table": 3}


@triton.jit
def _fractions(v, norm):
    """|v| / norm, 0 where the norm is 0 or NaN; scaled first so that nothing overflows."""
    pre = tl.where(norm < 7.888609052210118e-31, 1.2676506002282294e30, 1.0)  # 2**-100, 2**100
    pre = tl.where(norm > 1.2676506002282294e30, 7.888609052210118e-31, pre).to(tl.float32)
    kept = norm > 0
    inverse = tl.div_rn(tl.full(norm.shape, 1.0, tl.float32), tl.where(kept, norm * pre, 1.0))
    return tl.where(kept, tl.minimum((tl.abs(v) * pre) * inverse, 1.0), 0.0)


@triton.jit
def _table_index(r, random, levels, inverse_gaps, m):
    below = tl.zeros(r.shape, tl.int32)
    for j in range(1, m):
        below = below + (r >= tl.load(levels + j)).to(tl.int32)
    chance = (r - tl.load(levels + below)) * tl.load(inverse_gaps + below)
    return below + (random.to(tl.float32) + 0.5 < chance * 65536.0).to(tl.int32)


# Arguments that are 1 would become constants, which have no type to convert.
@triton.jit(do_not_specialize=["key", "n", "bucket_size", "m"])
def _quantize_kernel(
    x, scales, levels, inverse_gaps, packed, tail, key, n, bucket_size, m,
    GRID: tl.constexpr, BITS: tl.constexpr,
):  # fmt: skip
    block = tl.program_id(0)
    e = components(block)
    inside = e < n
    v = tl.load(x + e, mask=inside, other=0.0)
    r = _fractions(v, tl.load(scales + e // bucket_size, mask=inside, other=0.0))
    random = random_bits(e, key)
    minus = v.to(tl.int32, bitcast=True) < 0
    if GRID == 1:
        # Adding 2**23 leaves the nearest integer below the exponent; the sign is put back after.
        fixed = (r * (m * 65536.0) + 8388608.0).to(tl.int32, bitcast=True) - 0x4B000000
        index = tl.abs((tl.where(minus, -fixed, fixed) + random) >> 16)
    elif GRID == 2:
        smallest = tl.load(levels + 1)
        bits = (r + tl.maximum(r, smallest)).to(tl.int32, bitcast=True)
        index = ((bits + (random << 7) + 64) >> 23) - (128 - m)
    else:
        index = _table_index(r, random, levels, inverse_gaps, m)
    symbols = index + ((minus & (index > 0)).to(tl.int32) << (BITS - 1))
    if block < n // 512:
        store_block(symbols, packed, block, BITS)
    else:
        tl.store(tail + e % 512, symbols.to(tl.uint8), mask=inside)


def quantize(
    vector: torch.Tensor,
    *,
    levels: torch.Tensor,
    grid: str,
    norm: str,
    bucket_size: int,
    bits: int,
    key: int,
) -> tuple[torch.Tensor, torch.Tensor]:
    """Scales and packed symbols of ``vector``: the bytes of ``slimgrad.kernels.quantize``.

    Args:
        vector: (n,) float32, contiguous.
        levels: float32, ascending from 0 to 1, on the device of ``vector``.
        grid: "uniform", "exponential" or "table".
        norm: "l2" or "linf".
        bucket_size: components that share a scale, >= 1.
        bits: width of a symbol, 2 to 8.
        key: random stream, in [0, 2**64).

    Returns:
        Scales, float32 (ceil(n / bucket_size),), and symbols, uint8 (packed_bytes(n, bits),).

    Raises:
        ConfigError: an unknown grid or norm, or tensors that are not flat float32.
        BackendError: tensors that are not on a GPU.
    """
    check_flat("levels", levels, torch.float32)
    if grid not in GRIDS:
        raise ConfigError(unknown_name_message("grid", grid, GRIDS))
    scales = bucket_scales(vector, norm=norm, bucket_size=bucket_size)
    n = vector.numel()
    packed = torch.empty(packed_bytes(n, bits), dtype=torch.uint8, device=vector.device)
    tail = torch.empty(n % BLOCK, dtype=torch.uint8, device=vector.device)
    if n > 0:
        wide = levels.double()
        _quantize_kernel[(-(-n // BLOCK),)](
            vector,
            scales,
            levels,
            (1.0 / (wide[1:] - wide[:-1])).float(),
            whole_blocks(packed, n, bits),
            tail,
            signed_key(key),
            n,
            bucket_size,
            len(levels) - 1,
            GRID=GRIDS[grid],
            BITS=bits,
            enable_fp_fusion=False,
        )
    rest_of(packed, n, bits).copy_(pack_symbols(tail.cpu(), bits))
    return scales, packed
