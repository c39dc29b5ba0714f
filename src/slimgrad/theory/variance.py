"""Worst-case variance of unbiased rounding to a grid of levels."""

from __future__ import annotations

import math
from collections.abc import Sequence
from itertools import pairwise

from slimgrad.theory.arguments import (
    NORMS,
    checked_grid,
    checked_integer,
    checked_norm,
    checked_number,
)
from slimgrad.theory.relaxation import largest_curvature

__all__ = ["NORMS", "rounding_resolution_bound", "variance_bound"]


def variance_bound(levels: Sequence[float], n: int, norm: str = "l2") -> float:
    """Bound on the relative variance of rounding n components to ``levels``.

    Each r_i = |v_i| / norm(v) is rounded to one of its two neighbouring levels with mean r_i.
    With kappa = max over j >= 1 of (l_{j+1} - l_j)^2 / (4 l_j l_{j+1}), h = l_1 sqrt(n) and
    t = max over j of (l_{j+1} - l_j), the bound is the smaller of

    * l2: kappa + h^2 / (4 (1 + kappa)) while h <= 2 (1 + kappa), else h - 1; and n t^2 / 4,
    * linf: max(kappa, (sqrt(1 + (n - 1) l_1^2) - 1) / 2); and (n - 1) t^2 / 4.

    Guarantee: E||Q(v) - v||^2 <= bound ||v||^2 for every v. Outside the first bin a component
    adds at most kappa r^2; inside it the sum follows from the Cauchy-Schwarz inequality. The l2
    bound is attained by equal components for h >= 2 (1 + kappa); the second linf term is attained.

    Args:
        levels: ascending grid of non-negative levels, 0 and 1 included.
        n: length of a bucket in components, >= 0.
        norm: "l2" or "linf", taken over the bucket.

    Returns:
        The bound, relative to the squared Euclidean norm of the vector.

    Raises:
        ConfigError: levels that do not ascend from 0 to 1, a bad ``n``, an unknown norm.

    >>> round(variance_bound((0, 0.25, 0.5, 1), 512), 3)
    4.657
    >>> round(variance_bound((0, 0.25, 0.5, 1), 512, norm="linf"), 2)
    2.37

    References:
        Sharpens Ramezani-Kebrya et al. (2021), Theorem 4, which does not hold just above
        n = 2^(2s+1), and Alistarh et al. (2017), Lemma 3.1.
    """
    grid, n, norm = checked_grid(levels), checked_integer("n", n), checked_norm(norm)
    if n == 0:
        return 0.0
    pairs = list(pairwise(grid))
    kappa = largest_curvature(grid)
    widest = max(high - low for low, high in pairs)
    first = grid[1]
    if norm == "linf":
        dense = (math.sqrt(1 + (n - 1) * first**2) - 1) / 2
        return min(max(kappa, dense), (n - 1) * widest**2 / 4)
    h = first * math.sqrt(n)
    share = kappa + h**2 / (4 * (1 + kappa)) if h <= 2 * (1 + kappa) else h - 1
    return min(share, n * widest**2 / 4)


def rounding_resolution_bound(levels: Sequence[float], n: int, resolution: float) -> float:
    """Variance that rounding the probabilities themselves to a grid can add.

    A probability p rounded to within d = resolution / 2 turns p (1 - p) t^2 into at most
    (p (1 - p) + d) t^2 with t the width of the bin. Summed over n components this adds at most
    d min(max over j >= 1 of ((l_{j+1} - l_j) / l_j)^2 + n l_1^2, n max over j of t^2).

    Guarantee: added to ``variance_bound`` it bounds what an implementation that draws bits of
    that resolution does, for both norms.

    Args:
        levels: ascending grid of non-negative levels, 0 and 1 included.
        n: length of a bucket in components, >= 0.
        resolution: step of the probabilities, 0 to 1, for example 2**-16.

    Raises:
        ConfigError: levels that do not ascend from 0 to 1, a bad ``n`` or resolution.

    >>> rounding_resolution_bound((0, 0.5, 1), 4, resolution=0.5)
    0.25
    """
    grid, n = checked_grid(levels), checked_integer("n", n)
    resolution = checked_number("resolution", resolution, 0, 1)
    pairs = list(pairwise(grid))
    steepest = max((((high - low) / low) ** 2 for low, high in pairs[1:]), default=0.0)
    widest = max(high - low for low, high in pairs)
    return resolution / 2 * min(steepest + n * grid[1] ** 2, n * widest**2)
