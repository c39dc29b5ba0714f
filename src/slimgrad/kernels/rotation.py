"""Rounding after a random rotation, and back: argument checks and choice of implementation."""

from __future__ import annotations

import functools
from collections.abc import Sequence

import torch

from slimgrad.core.errors import ConfigError
from slimgrad.kernels.backend import native_module
from slimgrad.kernels.checks import (
    check_bits,
    check_count,
    check_key,
    check_size,
    check_sum_target,
    check_vector,
    note_change,
)
from slimgrad.kernels.native import rotation as native
from slimgrad.kernels.packing import packed_bytes
from slimgrad.kernels.reference import rotation as reference
from slimgrad.kernels.reference.packing import BLOCK
from slimgrad.kernels.reference.quantize import signed_levels
from slimgrad.kernels.reference.rotation import CELLS, RotationGrid

MOST_BITS = 4
_WIDEST_UNIT = 4.0


def rotate_quantize(
    vector: torch.Tensor,
    *,
    levels: Sequence[float],
    unit: float,
    bits: int,
    spread: float,
    key: int,
    serial: bool = False,
) -> tuple[torch.Tensor, torch.Tensor]:
    """Rotates blocks of 512 at random and rounds every component to the nearest level.

    With D a diagonal of random signs and H the Hadamard matrix of order 512, y = H D x, or
    H D' H D x where sum p_k^2 > spread (sum p_k)^2, p_k being the sum of x_i^2 over i mod 64 = k;
    y_i / sigma, sigma^2 being its variance over the signs, goes to the nearest of ± unit l_j, as
    level q_i = ± l_j. The scale is s = ||x||^2 / <y, q>, so that what a reader rebuilds, s D H q or
    s D H D' H q, has exactly the projection ||x||^2 on x. The lowest bit of s tells which it is.

    Nothing is random but the signs. Every backend, instruction set and number of threads gives the
    same bytes for the same arguments. A block with an infinity or NaN gets scale NaN and decodes to
    NaN; one of zeros, or so small that s is 0, decodes to zeros.

    Args:
        vector: (n,) float32 on the CPU, n >= 0; a strided one is copied.
        levels: 2**(bits - 1) magnitudes ascending from above 0 to 1.
        unit: level 1 in standard deviations, above 0 and below 4. No two boundaries between
            levels may lie in the same quarter of a standard deviation.
        bits: width of a symbol, 1 to 4, sign included.
        spread: from 0 (always twice) to 1 (never).
        key: random stream, in [0, 2**64).
        serial: use the calling thread only.

    Returns:
        Scales, float32 (ceil(n / 512),), and symbols of the zero-padded vector, uint8
        (packed_bytes(512 ceil(n / 512), bits),).

    Raises:
        ConfigError: an argument outside the ranges above.

    >>> v = torch.tensor([3.0, -4.0])
    >>> grid = dict(levels=(1.0,), bits=1)
    >>> scales, packed = rotate_quantize(v, unit=0.8, spread=1.0, key=0, **grid)
    >>> float(rotate_dequantize(packed, scales, n=2, key=0, **grid) @ v)
    25.0
    """
    check_vector("vector", vector, torch.float32)
    check_key(key)
    grid = _grid(tuple(levels), bits, unit, spread)
    vector = vector.detach().contiguous()
    module = native_module()
    if module is None:
        return reference.rotate_quantize(vector, grid, key)
    return native.rotate_quantize(module, vector, grid, key, serial=serial)


def rotate_dequantize(
    packed: torch.Tensor,
    scales: torch.Tensor,
    *,
    n: int,
    levels: Sequence[float],
    bits: int,
    key: int,
    out: torch.Tensor | None = None,
    serial: bool = False,
) -> torch.Tensor:
    """The vector that rotate_quantize packed: levels rotated back, times the scale.

    Args:
        packed: uint8 (packed_bytes(512 ceil(n / 512), bits),) on the CPU.
        scales: float32 (ceil(n / 512),) on the CPU.
        n: components, >= 0.
        levels: as given to rotate_quantize.
        bits: width of a symbol, 1 to 4, sign included.
        key: as given to rotate_quantize.
        out: (n,) float32, contiguous, on the CPU, to be overwritten; None for a new one.
        serial: use the calling thread only.

    Returns:
        float32 (n,), ``out`` where it is given.

    Raises:
        ConfigError: sizes that do not agree, or an argument outside its range.
    """
    table = _check_packed(packed, scales, n, levels, bits, key)
    module = native_module()
    packed, scales = packed.contiguous(), scales.detach().contiguous()
    if out is not None:
        check_size("out", out, torch.float32, n)
        check_sum_target(out, 1.0)
    if module is None:
        value = reference.rotate_dequantize(packed, scales, n=n, levels=table, bits=bits, key=key)
        return value if out is None else out.copy_(value)
    decoded = native.rotate_dequantize_into(
        module,
        torch.empty(n, dtype=torch.float32) if out is None else out,
        packed,
        scales,
        values=signed_levels(table, bits),
        bits=bits,
        key=key,
        alpha=None,
        serial=serial,
    )
    if out is not None:
        note_change(out)
    return decoded


def rotate_dequantize_add_(
    out: torch.Tensor,
    packed: torch.Tensor,
    scales: torch.Tensor,
    *,
    levels: Sequence[float],
    bits: int,
    key: int,
    alpha: float = 1.0,
    serial: bool = False,
) -> torch.Tensor:
    """Adds ``alpha`` times the packed vector to ``out`` in one pass.

    Equal to the last bit to ``out.add_(alpha * rotate_dequantize(...))``.

    Args:
        out: (n,) float32, contiguous, on the CPU; changed in place.
        packed: as given to rotate_dequantize.
        scales: as given to rotate_dequantize.
        levels: as given to rotate_quantize.
        bits: width of a symbol, 1 to 4, sign included.
        key: as given to rotate_quantize.
        alpha: factor, rounded to float32; finite.
        serial: use the calling thread only.

    Returns:
        ``out``.

    Raises:
        ConfigError: sizes that do not agree, or an argument outside its range.
    """
    check_sum_target(out, alpha)
    table = _check_packed(packed, scales, len(out), levels, bits, key)
    module = native_module()
    packed, scales = packed.contiguous(), scales.detach().contiguous()
    if module is None:
        value = reference.rotate_dequantize(
            packed, scales, n=len(out), levels=table, bits=bits, key=key
        )
        return out.add_(value if alpha == 1.0 else value * alpha)
    native.rotate_dequantize_into(
        module,
        out,
        packed,
        scales,
        values=signed_levels(table, bits),
        bits=bits,
        key=key,
        alpha=alpha,
        serial=serial,
    )
    note_change(out)
    return out


@functools.lru_cache(maxsize=64)
def _grid(levels: tuple[float, ...], bits: int, unit: float, spread: float) -> RotationGrid:
    table = _levels(levels, bits)
    if not 0.0 < unit < _WIDEST_UNIT:
        raise ConfigError(f"unit must lie between 0 and {_WIDEST_UNIT}, got {unit!r}")
    if not 0.0 <= spread <= 1.0:
        raise ConfigError(f"spread must be from 0 to 1, got {spread!r}")
    boundaries = (table[1:] + table[:-1]).double() / 2 * unit
    cells = (boundaries * (CELLS / _WIDEST_UNIT)).floor()
    if len(cells.unique()) < len(cells):
        raise ConfigError(
            f"levels {levels} times unit {unit} have two boundaries within a quarter of a "
            "standard deviation; take fewer levels"
        )
    return RotationGrid(table, unit, bits, spread)


@functools.lru_cache(maxsize=64)
def _levels(levels: tuple[float, ...], bits: int) -> torch.Tensor:
    """The levels as float32, checked."""
    check_bits(bits)
    if bits > MOST_BITS:
        raise ConfigError(f"rotated symbols have 1 to {MOST_BITS} bits, got {bits}")
    if len(levels) != 1 << (bits - 1):
        raise ConfigError(
            f"rotated symbols of {bits} bits need {1 << (bits - 1)} levels, got {len(levels)}"
        )
    table = torch.tensor(levels, dtype=torch.float32)
    if not table[0] > 0 or table[-1] != 1 or not bool((table[1:] > table[:-1]).all()):
        raise ConfigError(f"levels must ascend strictly from above 0 to 1 in float32, got {levels}")
    return table


def _check_packed(
    packed: torch.Tensor,
    scales: torch.Tensor,
    n: int,
    levels: Sequence[float],
    bits: int,
    key: int,
) -> torch.Tensor:
    """Checks what a decoder is given; the level table."""
    check_count(n)
    check_key(key)
    table = _levels(tuple(levels), bits)
    blocks = -(-n // BLOCK)
    check_size("packed", packed, torch.uint8, packed_bytes(blocks * BLOCK, bits))
    check_size("scales", scales, torch.float32, blocks)
    return table
