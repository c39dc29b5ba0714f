"""The linear program of the printed analysis: simple, and linear in the length."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from slimgrad.theory.arguments import checked_grid, checked_integer


def lp_variance_bound(levels: Sequence[float], n: int) -> float:
    """The value of the linear program that bounds the variance (l2 norm).

    Maximises sum_j d_j t_j^2 / 4 over real d_j >= 0, t_j the width of bin j, subject to
    sum_j d_j <= n and sum_j d_j l_j^2 <= 1. Two bins suffice: with the points
    (l_j^2, t_j^2 / 4) the value is n times their upper hull at 1 / n. For powers of 1/2 and
    n >= 4 it is 1/4 + (n - 4) 4^-s / 4.

    Guarantee: E||Q(v) - v||^2 <= bound ||v||^2. It grows like n, ``variance_bound`` like sqrt(n).

    Args:
        levels: ascending grid of non-negative levels, 0 and 1 included.
        n: length of a bucket in components, >= 1.

    Returns:
        The bound, relative to the squared norm.

    Raises:
        ConfigError: levels that do not ascend from 0 to 1 or a bad ``n``.

    >>> lp_variance_bound((0, 0.25, 0.5, 1), 64)
    1.1875

    References:
        Ramezani-Kebrya et al. (2021), Theorem 10 and equation 17.
    """
    grid = np.asarray(checked_grid(levels))
    share = 1 / checked_integer("n", n, 1)
    squares, gains = grid[:-1] ** 2, np.diff(grid) ** 2 / 4
    light = squares <= share
    best = float(gains[light].max())
    heavy, heavy_gains = squares[~light], gains[~light]
    for square, gain in zip(squares[light], gains[light], strict=True):
        mixed = gain + (heavy_gains - gain) * (share - square) / (heavy - square)
        best = max(best, float(mixed.max(initial=0.0)))
    return best / share
