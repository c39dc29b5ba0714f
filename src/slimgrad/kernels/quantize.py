"""Quantize and pack a vector, unpack and add it: argument checks and choice of implementation."""

from __future__ import annotations

import functools
import math
from collections.abc import Sequence

import torch

from slimgrad.core.errors import ConfigError
from slimgrad.core.registry import unknown_name_message
from slimgrad.kernels.backend import native_module
from slimgrad.kernels.native import quantize as native
from slimgrad.kernels.reference import packing
from slimgrad.kernels.reference import quantize as reference

GRIDS = ("uniform", "exponential", "table")
NORMS = ("l2", "linf")
MIN_BITS, MAX_BITS = 2, 8


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
        norm: "l2" or "linf", taken over each bucket.
        bucket_size: components that share a scale, >= 1; multiples of 512 are fastest.
        bits: width of a symbol, 2 to 8, sign included.
        key: random stream, in [0, 2**64).
        serial: use the calling thread only.

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
    _check_vector("vector", vector, torch.float32)
    _check_layout(bits, bucket_size)
    if norm not in NORMS:
        raise ConfigError(unknown_name_message("norm", norm, NORMS))
    if not _is_integer(key) or not 0 <= key < 1 << 64:
        raise ConfigError(f"key must be an integer in [0, 2**64), got {key!r}")
    table = _level_table(tuple(levels), bits, grid)
    vector = vector.detach().contiguous()
    module = native_module()
    if module is None:
        return reference.quantize(
            vector,
            levels=table,
            grid=grid,
            norm=norm,
            bucket_size=bucket_size,
            bits=bits,
            key=key,
        )
    return native.quantize(
        module,
        vector,
        levels=table,
        grid=grid,
        norm=norm,
        bucket_size=bucket_size,
        bits=bits,
        key=key,
        serial=serial,
    )


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
        levels: as given to quantize. A symbol above the last level decodes to NaN.
        bits: as given to quantize.
        bucket_size: as given to quantize.
        serial: use the calling thread only.

    Returns:
        float32 (n,).

    Raises:
        ConfigError: sizes that do not agree, or an argument outside its range.

    >>> packed = pack_symbols(torch.tensor([0, 1, 3], dtype=torch.uint8), bits=2)
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
        levels: as given to quantize.
        bits: as given to quantize.
        bucket_size: as given to quantize.
        alpha: factor, rounded to float32; finite.
        serial: use the calling thread only.

    Returns:
        ``out``.

    Raises:
        ConfigError: sizes that do not agree, or an argument outside its range.

    >>> packed = pack_symbols(torch.tensor([0, 1, 3], dtype=torch.uint8), bits=2)
    >>> total, scales = torch.ones(3), torch.tensor([5.0])
    >>> dequantize_add_(total, packed, scales, levels=(0.0, 1.0), bits=2, bucket_size=4, alpha=0.5)
    tensor([ 1.0000,  3.5000, -1.5000])
    """
    _check_vector("out", out, torch.float32)
    if not out.is_contiguous():
        raise ConfigError("out must be contiguous, it is changed in place; pass a flat copy")
    if out.requires_grad:
        raise ConfigError("out must not require grad, it is changed in place; pass out.detach()")
    if not abs(alpha) <= torch.finfo(torch.float32).max:
        raise ConfigError(f"alpha must be finite in float32, got {alpha!r}")
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
    if not out.is_inference():  # so that autograd sees the change, as it does with torch's own
        torch.autograd.graph.increment_version(out)
    return out


def packed_bytes(n: int, bits: int) -> int:
    """Bytes of ``n`` packed symbols: (n div 512) 64 bits + ceil((n mod 512) bits / 8).

    Raises:
        ConfigError: n below 0, or bits outside 2 to 8.

    >>> packed_bytes(513, 3)
    193
    """
    _check_layout(bits, 1)
    _check_count(n)
    return packing.packed_bytes(n, bits)


def pack_symbols(symbols: torch.Tensor, bits: int) -> torch.Tensor:
    """Packs uint8 symbols (n,), each below 2**bits, into uint8 (packed_bytes(n, bits),).

    Raises:
        ConfigError: bits outside 2 to 8, or a symbol that does not fit.

    >>> pack_symbols(torch.tensor([1, 2, 3], dtype=torch.uint8), bits=4)
    tensor([33,  3], dtype=torch.uint8)
    """
    _check_layout(bits, 1)
    _check_vector("symbols", symbols, torch.uint8)
    if len(symbols) > 0 and int(symbols.max()) >> bits:
        raise ConfigError(f"symbol {int(symbols.max())} does not fit in {bits} bits")
    return packing.pack_symbols(symbols.contiguous(), bits)


def unpack_symbols(packed: torch.Tensor, n: int, bits: int) -> torch.Tensor:
    """The ``n`` symbols, uint8 (n,), that pack_symbols or quantize packed.

    Raises:
        ConfigError: bits outside 2 to 8, or a size that does not hold n symbols.

    >>> unpack_symbols(torch.tensor([33, 3], dtype=torch.uint8), n=3, bits=4)
    tensor([1, 2, 3], dtype=torch.uint8)
    """
    _check_size("packed", packed, torch.uint8, packed_bytes(n, bits))
    return packing.unpack_symbols(packed.contiguous(), n, bits)


@functools.lru_cache(maxsize=64)
def _level_table(levels: tuple[float, ...], bits: int, grid: str | None) -> torch.Tensor:
    """The levels as float32, checked; ``grid`` None skips the check against a formula."""
    most = 1 << (bits - 1)
    if not 2 <= len(levels) <= most:
        raise ConfigError(
            f"{len(levels)} levels do not fit in {bits} bits: give 2 to {most}, 0 and 1 included"
        )
    table = torch.tensor(levels, dtype=torch.float32)
    if table[0] != 0 or table[-1] != 1 or not bool((table[1:] > table[:-1]).all()):
        raise ConfigError(f"levels must ascend strictly from 0 to 1 in float32, got {levels}")
    if grid is None or grid == "table":
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
def _symbol_values(levels: tuple[float, ...], bits: int) -> torch.Tensor:
    return reference.signed_levels(_level_table(levels, bits, None), bits)


def _is_integer(value: object) -> bool:
    return isinstance(value, int) and not isinstance(value, bool)


def _check_vector(name: str, tensor: torch.Tensor, dtype: torch.dtype) -> None:
    if tensor.dtype != dtype or tensor.dim() != 1 or tensor.device.type != "cpu":
        raise ConfigError(
            f"{name} must be flat, {dtype} and on the CPU, got shape {tuple(tensor.shape)}, "
            f"{tensor.dtype} on {tensor.device}"
        )


def _check_size(name: str, tensor: torch.Tensor, dtype: torch.dtype, size: int) -> None:
    _check_vector(name, tensor, dtype)
    if len(tensor) != size:
        raise ConfigError(f"{name} must have {size} elements, got {len(tensor)}")


def _check_count(n: int) -> None:
    if not _is_integer(n) or n < 0:
        raise ConfigError(f"n must be an integer >= 0, got {n!r}")


def _check_layout(bits: int, bucket_size: int) -> None:
    if not _is_integer(bits) or not MIN_BITS <= bits <= MAX_BITS:
        raise ConfigError(f"bits must be an integer from {MIN_BITS} to {MAX_BITS}, got {bits!r}")
    if not _is_integer(bucket_size) or not 1 <= bucket_size < 1 << 62:
        raise ConfigError(f"bucket_size must be an integer from 1 to 2**62, got {bucket_size!r}")


def _check_packed(
    packed: torch.Tensor,
    scales: torch.Tensor,
    n: int,
    levels: Sequence[float],
    bits: int,
    bucket_size: int,
) -> torch.Tensor:
    """Checks what a decoder is given; the level table."""
    _check_layout(bits, bucket_size)
    _check_size("packed", packed, torch.uint8, packed_bytes(n, bits))
    _check_size("scales", scales, torch.float32, -(-n // bucket_size))
    return _level_table(tuple(levels), bits, None)
