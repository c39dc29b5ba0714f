"""The best fixed levels for a normal variable, and what they give after a random rotation."""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cache

import numpy as np

from slimgrad.theory.arguments import checked_integer

MOST_BITS = 8
# Newton's steps square: after one of this size the next is lost in rounding.
CONVERGED = 1e-9
ROUNDS = 60


@dataclass(frozen=True)
class LloydMax:
    """Levels of least mean squared error for a standard normal variable, nearest level taken.

    Attributes:
        levels: the positive half, ascending; the other half is its mirror image. No level is 0.
        distortion: mean squared error D. With these levels E z q = E q^2 = 1 - D.
    """

    levels: tuple[float, ...]
    distortion: float


def lloyd_max_normal(bits: int) -> LloydMax:
    """The 2**bits levels that are best for a standard normal variable.

    Each level is the mean of the variable between the midpoints to its neighbours:
    l_j = (f(t_j) - f(t_{j+1})) / (F(t_{j+1}) - F(t_j)), t_j = (l_{j-1} + l_j) / 2. Solved by
    Newton's method from the levels of the density f^(1/3), which are best for many levels.

    Args:
        bits: width of a symbol, 1 to 8.

    Raises:
        ConfigError: ``bits`` out of range.

    >>> [round(level, 4) for level in lloyd_max_normal(2).levels]
    [0.4528, 1.5104]
    >>> round(lloyd_max_normal(4).distortion, 6)
    0.009501

    References:
        Max (1960); Lloyd (1982).
    """
    return _lloyd_max(checked_integer("bits", bits, 1, MOST_BITS))


@cache
def _lloyd_max(bits: int) -> LloydMax:
    half = 2 ** (bits - 1)
    levels = _companded_levels(half)
    for _ in range(ROUNDS):
        means, slopes = _bin_means(levels)
        step = np.linalg.solve(np.eye(half) - slopes, means - levels)
        levels = levels + step
        if np.abs(step).max() < CONVERGED:
            break
    means, _ = _bin_means(levels)
    edges = np.append(_edges(levels), math.inf)
    power = 2 * float((np.diff(_normal_cdf(edges)) * means**2).sum())
    return LloydMax(tuple(float(level) for level in levels), 1 - power)


def eden_variance(bits: int) -> float:
    """Relative variance D / (1 - D) of ``lloyd_max_normal`` levels on a randomly rotated vector.

    After a uniformly random rotation components are close to normal. The decoded vector, scaled
    by ||v||^2 / <R v, q>, is unbiased and has the variance 1 / (1 - D) - 1.

    Not a bound: the limit of long buckets under a uniformly random rotation. Random signs and a
    Hadamard transform come close to it for vectors that are not sparse.

    Args:
        bits: width of a symbol, 1 to 8.

    Raises:
        ConfigError: ``bits`` out of range.

    >>> [round(eden_variance(bits), 4) for bits in (1, 2, 3, 4)]
    [0.5708, 0.1331, 0.0358, 0.0096]

    References:
        Vargaftik, Ben Basat, Portnoy, Mendelson, Ben-Itzhak, Mitzenmacher (2022), "EDEN".
    """
    distortion = lloyd_max_normal(bits).distortion
    return distortion / (1 - distortion)


def _normal_cdf(points: np.ndarray) -> np.ndarray:
    return np.asarray([math.erfc(-point / math.sqrt(2)) / 2 for point in points])


def _density(points: np.ndarray) -> np.ndarray:
    return np.exp(-(points**2) / 2) / math.sqrt(2 * math.pi)


def _edges(levels: np.ndarray) -> np.ndarray:
    """Lower ends of the bins of the positive half."""
    return np.concatenate([[0.0], (levels[:-1] + levels[1:]) / 2])


def _bin_means(levels: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Mean of the variable in each bin, and how it moves with each level."""
    edges = np.append(_edges(levels), math.inf)
    # Tail masses are differenced, which keeps digits in the outer bins.
    masses = -np.diff(_normal_cdf(-edges))
    density = _density(edges)
    means = (density[:-1] - density[1:]) / masses
    upper = np.where(np.isfinite(edges[1:]), edges[1:], 0.0)
    by_lower = (means - edges[:-1]) * density[:-1] / masses
    by_upper = (upper - means) * density[1:] / masses
    by_lower[0] = 0.0
    half = len(levels)
    slopes = np.diag((by_lower + by_upper) / 2)
    slopes[np.arange(1, half), np.arange(half - 1)] += by_lower[1:] / 2
    slopes[np.arange(half - 1), np.arange(1, half)] += by_upper[:-1] / 2
    slopes[-1, -1] = by_lower[-1] / 2
    return means, slopes


def _companded_levels(half: int) -> np.ndarray:
    """Quantiles of a normal of variance 3, by bisection."""
    shares = 0.5 + (np.arange(half) + 0.5) / (2 * half)
    low, high = np.zeros(half), np.full(half, 20.0)
    for _ in range(60):
        middle = (low + high) / 2
        short = _normal_cdf(middle / math.sqrt(3)) < shares
        low, high = np.where(short, middle, low), np.where(short, high, middle)
    return low
