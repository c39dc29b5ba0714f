"""The best few values to stand for a normally distributed number."""

from __future__ import annotations

import functools
import math
from itertools import pairwise

from slimgrad.core.errors import ConfigError

_MAX_BITS = 6
_ITERATIONS = 100_000


@functools.cache
def normal_levels(bits: int) -> tuple[float, ...]:
    """Magnitudes whose nearest one stands for a standard normal number with least square error.

    With a sign bit, 2**(bits - 1) magnitudes are left. Lloyd's iteration: each magnitude becomes
    the mean of the half-normal density over the numbers nearest to it,
    l_j = (phi(t_j) - phi(t_{j+1})) / (Phi(t_{j+1}) - Phi(t_j)) with t_j half way between
    neighbours, t_0 = 0, until no magnitude moves by more than 1e-14. The density is log-concave,
    so there is one fixed point only.

    Args:
        bits: width of a symbol with its sign, 1 to 6.

    Returns:
        2**(bits - 1) ascending magnitudes in standard deviations, all above 0.

    Raises:
        ConfigError: bits out of range.

    >>> [round(level, 4) for level in normal_levels(2)]
    [0.4528, 1.5104]

    References:
        Lloyd (1982), "Least squares quantization in PCM"; Max (1960), table I.
    """
    if isinstance(bits, bool) or not isinstance(bits, int) or not 1 <= bits <= _MAX_BITS:
        raise ConfigError(f"bits must be an integer from 1 to {_MAX_BITS}, got {bits!r}")
    count = 2 ** (bits - 1)
    levels = tuple(4.0 * (j + 0.5) / count for j in range(count))
    for _ in range(_ITERATIONS):
        better = _centres(levels)
        moved = max(abs(a - b) for a, b in zip(levels, better, strict=True))
        levels = better
        if moved <= 1e-14:
            break
    return levels


def normal_distortion(levels: tuple[float, ...]) -> float:
    """Mean square error of a standard normal number replaced by the nearest signed level.

    Args:
        levels: ascending magnitudes above 0, in standard deviations.

    >>> round(normal_distortion(normal_levels(4)), 6)
    0.009501
    """
    edges = _edges(levels)
    error = 0.0
    for level, (low, high) in zip(levels, pairwise(edges), strict=True):
        mass = 2.0 * (_upper_tail(low) - _upper_tail(high))
        first = 2.0 * (_density(low) - _density(high))
        second = mass + 2.0 * (low * _density(low) - _moment_edge(high))
        error += second - 2.0 * level * first + level * level * mass
    return error


def _centres(levels: tuple[float, ...]) -> tuple[float, ...]:
    return tuple(
        (_density(low) - _density(high)) / (_upper_tail(low) - _upper_tail(high))
        for low, high in pairwise(_edges(levels))
    )


def _edges(levels: tuple[float, ...]) -> tuple[float, ...]:
    return (0.0, *((a + b) / 2.0 for a, b in pairwise(levels)), math.inf)


def _density(x: float) -> float:
    return math.exp(-0.5 * x * x) / math.sqrt(2.0 * math.pi)


def _upper_tail(x: float) -> float:
    return 0.5 * math.erfc(x / math.sqrt(2.0))


def _moment_edge(x: float) -> float:
    return 0.0 if math.isinf(x) else x * _density(x)
