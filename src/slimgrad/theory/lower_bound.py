"""What no proof can improve on: variances that some vector has."""

from __future__ import annotations

import math
from collections.abc import Sequence
from itertools import pairwise

from slimgrad.theory.arguments import checked_grid, checked_integer, checked_norm


def variance_lower_bound(levels: Sequence[float], n: int, norm: str = "l2") -> float:
    """A variance that some vector of n components has.

    * l2: k equal components and n - k zeros have (a + b) sqrt(k) - k a b - 1, where the bin
      [a, b] holds 1 / sqrt(k). The best k is taken; for l_1 sqrt(n) >= 2 it is n, and the value
      l_1 sqrt(n) - 1 grows like sqrt(n) for any grid.
    * linf: one component 1 and n - 1 of (sqrt(1 + (n - 1) l_1^2) - 1) / ((n - 1) l_1) have
      (sqrt(1 + (n - 1) l_1^2) - 1) / 2.

    Guarantee: attained, so the largest variance is at least this.

    Args:
        levels: ascending grid of non-negative levels, 0 and 1 included.
        n: length of a bucket in components, >= 1.
        norm: "l2" or "linf", of the bucket.

    Returns:
        The variance relative to the squared Euclidean norm.

    Raises:
        ConfigError: levels that do not ascend from 0 to 1, a bad ``n``, an unknown norm.

    >>> round(variance_lower_bound((0, 0.25, 0.5, 1), 512), 3)
    4.657

    References:
        Ramezani-Kebrya et al. (2021), Theorem 7 (order sqrt(n), l2 norm).
    """
    grid, n = checked_grid(levels), checked_integer("n", n, 1)
    if checked_norm(norm) == "linf":
        return (math.sqrt(1 + (n - 1) * grid[1] ** 2) - 1) / 2
    counts = {n}
    for low, high in list(pairwise(grid))[1:]:
        peak = ((1 / low + 1 / high) / 2) ** 2
        counts |= {min(n, math.floor(peak)), min(n, math.ceil(peak))} if peak < n else set()
    return max(0.0, *(_equal_components(grid, k) for k in counts))


def _equal_components(grid: tuple[float, ...], k: int) -> float:
    r = 1 / math.sqrt(k)
    low, high = next(pair for pair in pairwise(grid) if r <= pair[1])
    return k * (r - low) * (high - r)
