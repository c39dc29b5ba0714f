"""The worst case over vectors, relaxed to real counts, by its one-dimensional dual."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise

import numpy as np

BISECTIONS = 200
LEAST_CURVATURE = 1e-300


def largest_curvature(levels: Sequence[float]) -> float:
    """The most that phi(r) / r^2 can be outside the first bin, called kappa.

    Max over j >= 1 of (l_{j+1} - l_j)^2 / (4 l_j l_{j+1}), attained between l_j and l_{j+1}.

    >>> largest_curvature((0, 0.25, 0.5, 1))
    0.125
    """
    pairs = list(pairwise(levels))[1:]
    return max(((high - low) / low * ((high - low) / high) / 4 for low, high in pairs), default=0.0)


@dataclass(frozen=True)
class DualPoint:
    """The dual function of the relaxed worst case at one multiplier.

    Attributes:
        multiplier: lambda, the price of squared norm.
        value: lambda + n max(0, max_j gains_j), a bound on the variance of every vector.
        slope: a subgradient of ``value``: 1 - n r^2 at the best r.
        gains: for each bin j the maximum over r in the bin of phi(r) - lambda r^2.
    """

    multiplier: float
    value: float
    slope: float
    gains: np.ndarray


def dual_point(levels: Sequence[float], n: int, multiplier: float) -> DualPoint:
    """The dual function at ``multiplier`` >= -1, where phi(r) - lambda r^2 is concave in a bin."""
    low, high = np.asarray(levels[:-1]), np.asarray(levels[1:])
    r = np.clip((low + high) / max(2 * (1 + multiplier), LEAST_CURVATURE), low, high)
    gains = (r - low) * (high - r) - multiplier * r**2
    best = int(gains.argmax())
    gain = max(0.0, float(gains[best]))
    used = float(r[best]) if gain > 0 else 0.0
    return DualPoint(multiplier, multiplier + n * gain, 1 - n * used**2, gains)


def least_dual_point(levels: Sequence[float], n: int) -> DualPoint:
    """The multiplier at which the dual function, which is convex, is least: bisection on its slope.

    The value exceeds lambda. It is at most n / 4 at lambda = 0, and at most kappa + h at
    lambda = kappa + h, so no larger multiplier is best; below -1 the value does not fall.
    """
    limit = min(n / 4, largest_curvature(levels) + levels[1] * math.sqrt(n)) + 1
    low, high = dual_point(levels, n, -1.0), dual_point(levels, n, limit)
    best = min(low, high, key=lambda point: point.value)
    for _ in range(BISECTIONS):
        middle = (low.multiplier + high.multiplier) / 2
        if not low.multiplier < middle < high.multiplier:
            break
        point = dual_point(levels, n, middle)
        best = min(best, point, key=lambda candidate: candidate.value)
        low, high = (low, point) if point.slope > 0 else (point, high)
    return best
