"""Grids without a level at zero, as some published code uses them."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise

from slimgrad.core.errors import ConfigError
from slimgrad.theory.arguments import checked_integer
from slimgrad.theory.relaxation import largest_curvature


def no_zero_variance_bound(levels: Sequence[float], n: int) -> float:
    """Bound on the relative variance of rounding to +-levels when zero is not one of them.

    A component inside (-l_1, l_1) is sent as l_1 or -l_1, which adds l_1^2 - r^2: most for exact
    zeros. With kappa over the other bins the bound is max(kappa + (n - 1) l_1^2, n l_1^2 - 1).

    Guarantee: E||Q(v) - v||^2 <= bound ||v||^2 for every v and both norms. The vector
    (1, 0, ..., 0) has (n - 1) l_1^2: linear in n, where a level at zero gives order sqrt(n).

    Args:
        levels: ascending positive levels, the last one 1.
        n: length of a bucket in components, >= 1.

    Returns:
        The bound, relative to the squared Euclidean norm.

    Raises:
        ConfigError: levels that do not ascend to 1 from above 0, or a bad ``n``.

    >>> round(no_zero_variance_bound([2.0**-j for j in range(7, -1, -1)], 8192), 3)
    0.625
    """
    try:
        grid = tuple(float(level) for level in levels)
    except (TypeError, ValueError):
        grid = ()
    ascending = all(low < high for low, high in pairwise(grid))
    if not grid or not grid[0] > 0.0 or grid[-1] != 1.0 or not ascending:
        raise ConfigError(f"levels must be > 0 and ascend strictly to 1, got {levels!r}")
    n = checked_integer("n", n, 1)
    kappa = largest_curvature((0.0, *grid))
    return max(kappa + (n - 1) * grid[0] ** 2, n * grid[0] ** 2 - 1)
