"""Scales of buckets, signs, and rounding without a zero: checks and choice of implementation."""

from __future__ import annotations

import functools
from collections.abc import Sequence

import torch

from slimgrad.core.errors import ConfigError
from slimgrad.core.registry import unknown_name_message
from slimgrad.kernels.backend import native_module
from slimgrad.kernels.checks import check_bits, check_bucket_size, check_key, check_vector
from slimgrad.kernels.native import buckets as native
from slimgrad.kernels.reference import no_zero, signs
from slimgrad.kernels.reference import quantize as reference

SCALES = ("l2", "linf", "power_of_two", "mean", "unit")


def bucket_scales(
    vector: torch.Tensor, *, norm: str, bucket_size: int, serial: bool = False
) -> torch.Tensor:
    """One number for every bucket, the same for every backend and number of threads.

    Args:
        vector: (n,) float32 on the CPU.
        norm: "l2", "linf", "power_of_two" (the least one >= the maximum), "mean" (of the
            magnitudes) or "unit" (1).
        bucket_size: components of a bucket, >= 1; the last may be shorter.
        serial: use the calling thread only.

    Returns:
        float32 (ceil(n / bucket_size),); NaN for buckets with a component that is not finite.

    Raises:
        ConfigError: an argument outside the ranges above.

    >>> v = torch.tensor([3.0, -4.0, 0.0, 1.0])
    >>> bucket_scales(v, norm="mean", bucket_size=2)
    tensor([3.5000, 0.5000])
    """
    vector = _checked(vector, norm, SCALES, bucket_size)
    module = native_module()
    if module is None:
        return reference.bucket_scales(vector, norm=norm, bucket_size=bucket_size)
    return native.bucket_scales(module, vector, norm=norm, bucket_size=bucket_size, serial=serial)


def quantize_signs(
    vector: torch.Tensor, *, norm: str, bucket_size: int, serial: bool = False
) -> tuple[torch.Tensor, torch.Tensor]:
    """One bit a component, 1 where its sign bit is set, and a scale for every bucket.

    Not random. ``dequantize`` with levels (1.0,) and 1 bit gives scale times sign.

    Args:
        vector: (n,) float32 on the CPU.
        norm: what the scales hold, as in bucket_scales.
        bucket_size: components that share a scale, >= 1.
        serial: use the calling thread only.

    Returns:
        Scales, float32 (ceil(n / bucket_size),), and symbols, uint8 (packed_bytes(n, 1),), 0 in
        buckets whose scale is 0 or NaN.

    Raises:
        ConfigError: an argument outside the ranges above.

    >>> quantize_signs(torch.tensor([3.0, -4.0]), norm="mean", bucket_size=2)
    (tensor([3.5000]), tensor([2], dtype=torch.uint8))
    """
    vector = _checked(vector, norm, SCALES, bucket_size)
    module = native_module()
    if module is None:
        return signs.quantize_signs(vector, norm=norm, bucket_size=bucket_size)
    return native.quantize_signs(module, vector, norm=norm, bucket_size=bucket_size, serial=serial)


def quantize_no_zero(
    vector: torch.Tensor,
    *,
    levels: Sequence[float],
    norm: str,
    bucket_size: int,
    bits: int,
    key: int,
    serial: bool = False,
) -> tuple[torch.Tensor, torch.Tensor]:
    """Rounds at random without bias to levels of which none is zero, and packs the symbols.

    As ``quantize`` above the smallest level l_0. Below it, x = norm r becomes norm l_0 with
    probability (r + l_0) / (2 l_0) and -norm l_0 otherwise, so the variance there is
    norm**2 (l_0**2 - r**2), largest for zeros.

    Args:
        vector: (n,) float32 on the CPU.
        levels: 2**(bits - 1) magnitudes above 0, ascending, the last 1.
        norm: "l2", "linf" or "power_of_two" of each bucket.
        bucket_size: components that share a scale, >= 1.
        bits: width of a symbol, 1 to 8, sign included.
        key: random stream, in [0, 2**64).
        serial: use the calling thread only.

    Returns:
        Scales, float32 (ceil(n / bucket_size),), and symbols, uint8 (packed_bytes(n, bits),), 0
        in buckets whose scale is 0 or NaN.

    Raises:
        ConfigError: an argument outside the ranges above.

    >>> v = torch.tensor([8.0, -8.0, 4.0])
    >>> quantize_no_zero(v, levels=(0.5, 1.0), norm="linf", bucket_size=3, bits=2, key=0)
    (tensor([8.]), tensor([13], dtype=torch.uint8))

    References:
        Ramezani-Kebrya, Faghri, Markov, Aksenov, Alistarh, Roy (2021), the grids of their code.
    """
    vector = _checked(vector, norm, SCALES[:3], bucket_size)
    check_bits(bits)
    check_key(key)
    table = _levels_without_zero(tuple(levels), bits)
    module = native_module()
    if module is None:
        return no_zero.quantize_no_zero(
            vector, levels=table, norm=norm, bucket_size=bucket_size, bits=bits, key=key
        )
    return native.quantize_no_zero(
        module,
        vector,
        levels=table,
        norm=norm,
        bucket_size=bucket_size,
        bits=bits,
        key=key,
        serial=serial,
    )


def _checked(
    vector: torch.Tensor, norm: str, norms: Sequence[str], bucket_size: int
) -> torch.Tensor:
    check_vector("vector", vector, torch.float32)
    check_bucket_size(bucket_size)
    if norm not in norms:
        raise ConfigError(unknown_name_message("norm", norm, norms))
    return vector.detach().contiguous()


@functools.lru_cache(maxsize=64)
def _levels_without_zero(levels: tuple[float, ...], bits: int) -> torch.Tensor:
    """The levels as float32, checked."""
    table = torch.tensor(levels, dtype=torch.float32)
    ascends = bool((table[1:] > table[:-1]).all())
    if len(levels) != 1 << (bits - 1) or table[0] <= 0 or table[-1] != 1 or not ascends:
        raise ConfigError(
            f"{bits} bits without zero take {1 << (bits - 1)} levels that ascend strictly from "
            f"above 0 to 1 in float32, got {levels}"
        )
    return table
