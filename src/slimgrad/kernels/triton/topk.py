"""The places of the largest magnitudes: a radix selection, then a compaction in order."""

from __future__ import annotations

import torch
import triton
import triton.language as tl

from slimgrad.core.errors import ConfigError
from slimgrad.kernels.triton.device import check_flat

TILE = 1024
# Bits of the magnitude, highest first: where a digit begins, and how many it has.
_DIGITS = ((20, 11), (10, 10), (0, 10))


@triton.jit
def _magnitudes(x, n):
    e = tl.program_id(0).to(tl.int64) * 1024 + tl.arange(0, 1024)
    v = tl.load(x + e, mask=e < n, other=0.0)
    return e, tl.where(e < n, v.to(tl.int32, bitcast=True) & 0x7FFFFFFF, -1)


@triton.jit
def _count_digit_kernel(x, counts, n, prefix, LOW: tl.constexpr, WIDTH: tl.constexpr):
    e, magnitude = _magnitudes(x, n)
    digit = (magnitude >> LOW) & ((1 << WIDTH) - 1)
    chosen = (e < n) & (magnitude >> (LOW + WIDTH) == prefix)
    tl.atomic_add(counts + digit, tl.full(digit.shape, 1, tl.int32), mask=chosen)


@triton.jit
def _count_kernel(x, above, equal, n, threshold):
    _, magnitude = _magnitudes(x, n)
    tile = tl.program_id(0)
    tl.store(above + tile, tl.sum((magnitude > threshold).to(tl.int32), axis=0))
    tl.store(equal + tile, tl.sum((magnitude == threshold).to(tl.int32), axis=0))


@triton.jit
def _place_kernel(x, places, above_before, equal_before, n, threshold, ties):
    """Writes the places kept by this tile behind those of the tiles before it."""
    e, magnitude = _magnitudes(x, n)
    tile = tl.program_id(0)
    is_equal = (magnitude == threshold).to(tl.int32)
    equals = tl.load(equal_before + tile)
    rank = equals + tl.cumsum(is_equal, axis=0) - is_equal
    kept = (magnitude > threshold) | ((is_equal == 1) & (rank < ties))
    ones = kept.to(tl.int32)
    start = tl.load(above_before + tile) + tl.minimum(equals, ties)
    tl.store(places + start + tl.cumsum(ones, axis=0) - ones, e, mask=kept)


def topk_places(vector: torch.Tensor, k: int) -> torch.Tensor:
    """Places of the k largest magnitudes, ascending; of equal ones the lowest places.

    Args:
        vector: (n,) float32, contiguous.
        k: from 0 to n.

    Returns:
        int64 (k,), on the device of ``vector``.

    Raises:
        ConfigError: ``k`` out of range or a tensor that is not flat float32.
        BackendError: a tensor that is not on a GPU.
    """
    check_flat("vector", vector, torch.float32)
    n = vector.numel()
    if not 0 <= k <= n:
        raise ConfigError(f"k must be an integer from 0 to {n}, got {k!r}")
    places = torch.empty(k, dtype=torch.int64, device=vector.device)
    if k == 0:
        return places
    tiles = -(-n // TILE)
    threshold, ties = _threshold(vector, k, tiles)
    above, equal = torch.empty(2, tiles, dtype=torch.int32, device=vector.device)
    _count_kernel[(tiles,)](vector, above, equal, n, threshold)
    above_before = above.cumsum(0) - above
    equal_before = equal.cumsum(0) - equal
    _place_kernel[(tiles,)](vector, places, above_before, equal_before, n, threshold, ties)
    return places


def _threshold(vector: torch.Tensor, k: int, tiles: int) -> tuple[int, int]:
    """Bits of the k-th largest magnitude, and how many components equal to it are kept."""
    prefix, left = 0, k
    for low, width in _DIGITS:
        counts = torch.zeros(1 << width, dtype=torch.int32, device=vector.device)
        _count_digit_kernel[(tiles,)](vector, counts, len(vector), prefix, LOW=low, WIDTH=width)
        at_least = counts.flip(0).cumsum(0).flip(0)
        digit = int((at_least >= left).sum()) - 1
        left -= int(at_least[digit] - counts[digit])
        prefix = prefix << width | digit
    return prefix, left
