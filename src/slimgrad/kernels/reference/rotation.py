"""Rotation by random signs and Hadamard matrices, and rounding to the nearest level, in torch.

As in the reference of rounding, every float32 operation is rounded on its own in a fixed order.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import torch

from slimgrad.kernels.reference.packing import BLOCK, LANES, pack_symbols, unpack_symbols
from slimgrad.kernels.reference.quantize import signed_levels
from slimgrad.kernels.reference.rounding_bits import random_words

CHUNK_BLOCKS = 128
CELLS, CELL_BITS = 16, 18  # cells a quarter of a standard deviation wide, 2**18 steps in each
_STEPS = 2.0 ** (CELL_BITS + 2)
_SLOTS = BLOCK // LANES
_ROW = 64
_LEAST_SQUARES, _MOST_SQUARES = 2.0**-50, 2.0**50
_CLOSE_TO_OVERFLOW = 2.0**100
_LARGEST = torch.finfo(torch.float32).max
_INTEGER_BITS = 0x4B000000  # of 2**23: a sum with it has the nearest integer in its lowest bits


@dataclass(frozen=True)
class RotationGrid:
    """What a rotated component is rounded to, and when a block is rotated twice.

    Attributes:
        levels: float32 (2**(bits - 1),), ascending from above 0 to 1.
        unit: the last level in standard deviations of a rotated component, below 4.
        bits: width of a symbol, 1 to 4.
        spread: with p_k the sum of squares of the components e with e mod 64 = k, a block is
            rotated twice where sum p_k^2 > spread (sum p_k)^2.
    """

    levels: torch.Tensor
    unit: float
    bits: int
    spread: float

    @cached_property
    def cells(self) -> torch.Tensor:
        """int32 (16,): (word + cell) >> 18 is the index of the level nearest to a magnitude.

        ``word`` counts the magnitude in 2**-20 standard deviations, with the bits of 2**23 above;
        its ``cell`` is picked by bits 18 to 21. A cell holds at most one boundary of levels.
        """
        levels = self.levels.double() * self.unit
        boundaries = ((levels[1:] + levels[:-1]) / 2 * _STEPS).round().long()[:, None]
        low = torch.arange(CELLS) << CELL_BITS
        high = low + (1 << CELL_BITS)
        below = (boundaries <= low).sum(0)
        lack = torch.where((boundaries > low) & (boundaries < high), high - boundaries, 0).sum(0)
        offsets = (below << CELL_BITS) + lack - low - _INTEGER_BITS
        return offsets.to(torch.int32)


def rotate_quantize(
    vector: torch.Tensor, grid: RotationGrid, key: int
) -> tuple[torch.Tensor, torch.Tensor]:
    """Scales (float32, one a block of 512) and packed symbols (uint8) of a float32 ``vector``."""
    blocks, factors, finite = _within_range(_in_blocks(vector))
    squares = _sum_of_rows((blocks * blocks).view(-1, BLOCK // _ROW, _ROW))
    parts = _sums_of_lanes((blocks * blocks).view(-1, BLOCK // _ROW, _ROW))
    twice = _sum_of_rows(parts.square()[:, None]) > grid.spread * (squares * squares)
    once = hadamard(blocks * signs(len(blocks), key, 0))
    again = hadamard(once * signs(len(blocks), key, 1))
    rotated = torch.where(twice[:, None], again, once)
    variance = torch.where(twice, squares * BLOCK, squares)
    magnitudes = _nearest(rotated.abs(), variance, grid)
    symbols = magnitudes | (torch.signbit(rotated).long() << (grid.bits - 1))
    products = (rotated.abs() * grid.levels[magnitudes]).view(-1, 4, _SLOTS // 4, LANES)
    projection = _sum_of_rows(products.transpose(1, 2).reshape(-1, _SLOTS // 4, _ROW))
    scales = ((squares / projection).double() * factors).clamp(max=_LARGEST)
    decoded = _unrotated(signed_levels(grid.levels, grid.bits)[symbols], twice, key)
    largest = _LARGEST * (1.0 - 2.0**-22) / decoded.abs().amax(1).double()
    scales = torch.where(factors > _CLOSE_TO_OVERFLOW, torch.minimum(scales, largest), scales)
    scales = (scales.float().view(torch.int32) & ~1 | twice.int()).view(torch.float32)
    scales = torch.where(squares > 0, scales, 0.0)
    symbols[scales == 0] = 0
    scales[~finite] = torch.nan
    return scales, pack_symbols(symbols.flatten().to(torch.uint8), grid.bits)


def rotate_dequantize(
    packed: torch.Tensor,
    scales: torch.Tensor,
    *,
    n: int,
    levels: torch.Tensor,
    bits: int,
    key: int,
) -> torch.Tensor:
    """The float32 vector (n,) that the symbols and scales stand for."""
    symbols = unpack_symbols(packed, len(scales) * BLOCK, bits).long().view(-1, BLOCK)
    values = signed_levels(levels, bits)[symbols]
    blocks = _unrotated(values, (scales.view(torch.int32) & 1).bool(), key) * scales[:, None]
    return blocks.flatten()[:n]


def hadamard(blocks: torch.Tensor) -> torch.Tensor:
    """Sums and differences of components 1, 2, 4, ..., 256 apart, of rows of 512.

    >>> hadamard(torch.eye(512)[:1])[0, :3]
    tensor([1., 1., 1.])
    """
    for stride in (1, 2, 4, 8, 16, 32, 64, 128, 256):
        low, high = blocks.view(len(blocks), BLOCK // (2 * stride), 2, stride).unbind(2)
        blocks = torch.stack([low + high, low - high], 2).view(len(blocks), BLOCK)
    return blocks


def signs(count: int, key: int, turn: int) -> torch.Tensor:
    """Signs of the components of ``count`` blocks before rotation ``turn``: float32 (count, 512).

    >>> signs(2, key=1, turn=0).unique()
    tensor([-1.,  1.])
    """
    chunks = -(-count // CHUNK_BLOCKS)
    blocks = torch.arange(min(count, CHUNK_BLOCKS))[:, None]
    counters = 2 * LANES * blocks + LANES * turn + torch.arange(LANES)
    words = random_words(chunks, counters.flatten(), key).view(-1, 1, LANES)[:count]
    bits = (words >> torch.arange(_SLOTS)[:, None]) & 1
    return (1.0 - 2.0 * bits).view(count, BLOCK)


def _in_blocks(vector: torch.Tensor) -> torch.Tensor:
    return torch.nn.functional.pad(vector, (0, -len(vector) % BLOCK)).view(-1, BLOCK)


def _within_range(blocks: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
    """Blocks whose squares float32 can square, by what to multiply them again, and which hold.

    Blocks outside are divided by a power of two; those that are not finite become zero.
    """
    squares = _sum_of_rows((blocks * blocks).view(-1, BLOCK // _ROW, _ROW))
    inside = (squares >= _LEAST_SQUARES) & (squares <= _MOST_SQUARES)
    largest = blocks.abs().amax(1)
    finite = largest.isfinite()
    exponents = torch.frexp(torch.where(finite & ~inside, largest, 0.5))[1]
    factors = torch.ldexp(torch.ones(len(blocks), dtype=torch.float64), exponents)
    blocks = torch.where(finite[:, None], blocks, 0.0)
    return (blocks.double() / factors[:, None]).float(), factors, finite


def _nearest(magnitudes: torch.Tensor, variance: torch.Tensor, grid: RotationGrid) -> torch.Tensor:
    """Index (int64) of the level nearest to each rotated magnitude; 0 in blocks of zeros."""
    steps = _STEPS / variance.double().sqrt().float()
    places = magnitudes * torch.where(variance > 0, steps, 0.0)[:, None]
    words = (places.clamp(max=CELLS * 2.0**CELL_BITS - 1) + 2.0**23).view(torch.int32)
    cells = grid.cells[((words >> CELL_BITS) & (CELLS - 1)).long()]
    return ((words + cells) >> CELL_BITS).long()


def _unrotated(values: torch.Tensor, twice: torch.Tensor, key: int) -> torch.Tensor:
    inner = hadamard(values) * signs(len(values), key, 1)
    return hadamard(torch.where(twice[:, None], inner, values)) * signs(len(values), key, 0)


def _sum_of_rows(rows: torch.Tensor) -> torch.Tensor:
    """Sum of (blocks, r, 64): 64 lanes in ascending order, then a tree over the lanes."""
    lanes = _sums_of_lanes(rows)
    while lanes.shape[1] > 1:
        half = lanes.shape[1] // 2
        lanes = lanes[:, :half] + lanes[:, half:]
    return lanes[:, 0]


def _sums_of_lanes(rows: torch.Tensor) -> torch.Tensor:
    lanes = rows.new_zeros(len(rows), _ROW)
    for row in rows.unbind(1):
        lanes = lanes + row
    return lanes
