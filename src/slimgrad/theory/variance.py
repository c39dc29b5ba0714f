"""Worst-case variance of unbiased rounding to a grid of levels."""

from __future__ import annotations

import math
from collections.abc import Sequence
from itertools import pairwise

from slimgrad.core.errors import ConfigError
from slimgrad.core.registry import unknown_name_message

NORMS = ("l2", "linf")


def _checked(levels: Sequence[float], n: int) -> tuple[float, ...]:
    grid = tuple(float(level) for level in levels)
    ascending = all(low < high for low, high in pairwise(grid))
    if len(grid) < 2 or grid[0] != 0.0 or grid[-1] != 1.0 or not ascending:
        raise ConfigError(f"levels must ascend strictly from 0 to 1, got {grid!r}")
    if not isinstance(n, int) or isinstance(n, bool) or n < 0:
        raise ConfigError(f"n must be an integer >= 0, got n={n!r}")
    return grid


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
    grid = _checked(levels, n)
    if norm not in NORMS:
        raise ConfigError(unknown_name_message("norm", norm, NORMS))
    if n == 0:
        return 0.0
    pairs = list(pairwise(grid))
    kappa = max(((high - low) ** 2 / (4 * low * high) for low, high in pairs[1:]), default=0.0)
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
        resolution: step of the probabilities, for example 2**-16.

    Raises:
        ConfigError: levels that do not ascend from 0 to 1, or a bad ``n``.

    >>> rounding_resolution_bound((0, 0.5, 1), 4, resolution=0.5)
    0.25
    """
    grid = _checked(levels, n)
    pairs = list(pairwise(grid))
    steepest = max((((high - low) / low) ** 2 for low, high in pairs[1:]), default=0.0)
    widest = max(high - low for low, high in pairs)
    return resolution / 2 * min(steepest + n * grid[1] ** 2, n * widest**2)
