"""Rounding to a grid of levels, and back: argument checks and choice of implementation."""

from __future__ import annotations

import functools
import math
from collections.abc import Sequence

import torch

from slimgrad.core.errors import ConfigError
from slimgrad.core.registry import unknown_name_message
from slimgrad.kernels.backend import native_module
from slimgrad.kernels.checks import (
    check_bits,
    check_bucket_size,
    check_key,
    check_size,
    check_sum_target,
    check_vector,
    note_change,
)
from slimgrad.kernels.native import quantize as native
from slimgrad.kernels.packing import packed_bytes, quantized_buffers
from slimgrad.kernels.reference import quantize as reference

GRIDS = ("uniform", "exponential", "table")
NORMS = ("l2", "linf", "power_of_two")
LEAST_BITS = 2  # a sign and a magnitude


def quantize(
    vector: torch.Tensor,
    *,
    levels: Sequence[float],
    grid: str,
    norm: str,
    bucket_size: int,
    bits: int,
    key: int,
    serial: bool = False,
    out: tuple[torch.Tensor, torch.Tensor] | None = None,
) -> tuple[torch.Tensor, torch.Tensor]:
    """Rounds each component at random to a level of its bucket's norm and packs the symbols.

    With r = |v_i| / norm in [l_j, l_{j+1}], the result is sign(v_i) norm l_{j+1} with probability
    (r - l_j) / (l_{j+1} - l_j) and sign(v_i) norm l_j otherwise.

    Unbiased up to the resolution 2**-16 of the probabilities. Variance of a component:
    norm**2 (l_{j+1} - r) (r - l_j) (Ramezani-Kebrya et al., 2021, section 3). Every backend,
    instruction set and number of threads gives the same bytes for the same arguments. A bucket
    with an infinity or NaN gets scale NaN and decodes to NaN.

    Args:
        vector: (n,) float32 on the CPU, n >= 0; a strided one is copied.
        levels: magnitudes from 0 to 1, ascending, at most 2**(bits - 1) of them.
        grid: "uniform" (levels j / m), "exponential" (0 and 2**-s .. 1) or "table" (any levels).
        norm: of each bucket: "l2", "linf", or "power_of_two", the least one >= the maximum (the
            maximum itself above 2**127).
        bucket_size: components that share a scale, >= 1; multiples of 512 are fastest.
        bits: width of a symbol, 2 to 8, sign included.
        key: random stream, in [0, 2**64).
        serial: use the calling thread only.
        out: contiguous tensors of the forms below to write to; None for new ones.

    Returns:
        Scales, float32 (ceil(n / bucket_size),), and symbols, uint8 (packed_bytes(n, bits),).

    Raises:
        ConfigError: an argument outside the ranges above.

    >>> v = torch.tensor([3.0, -4.0])
    >>> grid = dict(levels=(0.0, 0.25, 0.5, 1.0), bits=3, bucket_size=2)
    >>> scales, packed = quantize(v, grid="exponential", norm="linf", key=0, **grid)
    >>> scales
    tensor([4.])
    >>> dequantize(packed, scales, n=2, **grid)[1]
    tensor(-4.)
    """
    check_vector("vector", vector, torch.float32)
    check_bits(bits, LEAST_BITS)
    check_bucket_size(bucket_size)
    if norm not in NORMS:
        raise ConfigError(unknown_name_message("norm", norm, NORMS))
    check_key(key)
    table = _level_table(tuple(levels), bits, grid)
    vector = vector.detach().contiguous()
    buffers = quantized_buffers(len(vector), bits, bucket_size, out)
    module = native_module()
    if module is None:
        found = reference.quantize(
            vector,
            levels=table,
            grid=grid,
            norm=norm,
            bucket_size=bucket_size,
            bits=bits,
            key=key,
        )
        for buffer, part in zip(buffers, found, strict=True):
            buffer.copy_(part)
        return buffers
    native.quantize(
        module,
        vector,
        levels=table,
        grid=grid,
        norm=norm,
        bucket_size=bucket_size,
        bits=bits,
        key=key,
        serial=serial,
        buffers=buffers,
    )
    return buffers


def dequantize(
    packed: torch.Tensor,
    scales: torch.Tensor,
    *,
    n: int,
    levels: Sequence[float],
    bits: int,
    bucket_size: int,
    serial: bool = False,
) -> torch.Tensor:
    """The vector that quantize packed: scale times signed level, component by component.

    Args:
        packed: uint8 (packed_bytes(n, bits),) on the CPU.
        scales: float32 (ceil(n / bucket_size),) on the CPU.
        n: components, >= 0.
        levels: magnitudes, ascending from 0 or above. A symbol above the last decodes to NaN.
        bits: width of a symbol, 1 to 8, sign included.
        bucket_size: as given to quantize.
        serial: use the calling thread only.

    Returns:
        float32 (n,).

    Raises:
        ConfigError: sizes that do not agree, or an argument outside its range.

    >>> from slimgrad import kernels
    >>> packed = kernels.pack_symbols(torch.tensor([0, 1, 3], dtype=torch.uint8), bits=2)
    >>> dequantize(packed, torch.tensor([5.0]), n=3, levels=(0.0, 1.0), bits=2, bucket_size=4)
    tensor([ 0.,  5., -5.])
    """
    table = _check_packed(packed, scales, n, levels, bits, bucket_size)
    packed, scales = packed.contiguous(), scales.detach().contiguous()
    module = native_module()
    if module is None:
        return reference.dequantize(
            packed, scales, n=n, levels=table, bits=bits, bucket_size=bucket_size
        )
    return native.dequantize_into(
        module,
        torch.empty(n, dtype=torch.float32),
        packed,
        scales,
        values=_symbol_values(tuple(levels), bits),
        bits=bits,
        bucket_size=bucket_size,
        alpha=None,
        serial=serial,
    )


def dequantize_add_(
    out: torch.Tensor,
    packed: torch.Tensor,
    scales: torch.Tensor,
    *,
    levels: Sequence[float],
    bits: int,
    bucket_size: int,
    alpha: float = 1.0,
    serial: bool = False,
) -> torch.Tensor:
    """Adds ``alpha`` times the packed vector to ``out`` in one pass: out += alpha Q(v).

    Equal to the last bit to ``out.add_(alpha * dequantize(...))``.

    Args:
        out: (n,) float32, contiguous, on the CPU; changed in place.
        packed: uint8 (packed_bytes(n, bits),).
        scales: float32 (ceil(n / bucket_size),).
        levels: as given to dequantize.
        bits: as given to dequantize.
        bucket_size: as given to quantize.
        alpha: factor, rounded to float32; finite.
        serial: use the calling thread only.

    Returns:
        ``out``.

    Raises:
        ConfigError: sizes that do not agree, or an argument outside its range.

    >>> from slimgrad import kernels
    >>> packed = kernels.pack_symbols(torch.tensor([0, 1, 3], dtype=torch.uint8), bits=2)
    >>> total, scales = torch.ones(3), torch.tensor([5.0])
    >>> dequantize_add_(total, packed, scales, levels=(0.0, 1.0), bits=2, bucket_size=4, alpha=0.5)
    tensor([ 1.0000,  3.5000, -1.5000])
    """
    check_sum_target(out, alpha)
    table = _check_packed(packed, scales, len(out), levels, bits, bucket_size)
    packed, scales = packed.contiguous(), scales.detach().contiguous()
    module = native_module()
    if module is None:
        return reference.dequantize_add_(
            out, packed, scales, levels=table, bits=bits, bucket_size=bucket_size, alpha=alpha
        )
    native.dequantize_into(
        module,
        out,
        packed,
        scales,
        values=_symbol_values(tuple(levels), bits),
        bits=bits,
        bucket_size=bucket_size,
        alpha=alpha,
        serial=serial,
    )
    note_change(out)
    return out


@functools.lru_cache(maxsize=64)
def _level_table(levels: tuple[float, ...], bits: int, grid: str) -> torch.Tensor:
    """The levels as float32, checked."""
    most = 1 << (bits - 1)
    if not 2 <= len(levels) <= most:
        raise ConfigError(
            f"{len(levels)} levels do not fit in {bits} bits: give 2 to {most}, 0 and 1 included"
        )
    table = torch.tensor(levels, dtype=torch.float32)
    if table[0] != 0 or table[-1] != 1 or not bool((table[1:] > table[:-1]).all()):
        raise ConfigError(f"levels must ascend strictly from 0 to 1 in float32, got {levels}")
    if grid == "table":
        return table
    m = len(levels) - 1
    if grid == "uniform":
        formula = [j / m for j in range(m + 1)]
    elif grid == "exponential":
        formula = [0.0] + [math.ldexp(1.0, j - m) for j in range(1, m + 1)]
    else:
        raise ConfigError(unknown_name_message("grid", grid, GRIDS))
    if not torch.equal(table, torch.tensor(formula, dtype=torch.float32)):
        raise ConfigError(
            f"levels {levels} are not the {grid} grid; use grid='table' for levels of your own"
        )
    return table


@functools.lru_cache(maxsize=64)
def _decoded_levels(levels: tuple[float, ...], bits: int) -> torch.Tensor:
    """The levels as float32: any that ascend from 0 or above, one a magnitude at most."""
    most = 1 << (bits - 1)
    if not 1 <= len(levels) <= most:
        raise ConfigError(f"{len(levels)} levels do not fit in {bits} bits: give 1 to {most}")
    table = torch.tensor(levels, dtype=torch.float32)
    if not 0 <= table[0] <= table[-1] < math.inf or not bool((table[1:] > table[:-1]).all()):
        raise ConfigError(f"levels must ascend strictly from 0 or above in float32, got {levels}")
    return table


@functools.lru_cache(maxsize=64)
def _symbol_values(levels: tuple[float, ...], bits: int) -> torch.Tensor:
    return reference.signed_levels(_decoded_levels(levels, bits), bits)


def _check_packed(
    packed: torch.Tensor,
    scales: torch.Tensor,
    n: int,
    levels: Sequence[float],
    bits: int,
    bucket_size: int,
) -> torch.Tensor:
    """Checks what a decoder is given; the level table."""
    check_bits(bits)
    check_bucket_size(bucket_size)
    check_size("packed", packed, torch.uint8, packed_bytes(n, bits))
    check_size("scales", scales, torch.float32, -(-n // bucket_size))
    return _decoded_levels(tuple(levels), bits)
