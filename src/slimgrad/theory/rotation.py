"""How far rounding after a random rotation can be off, for any vector."""

from __future__ import annotations

import functools
import math
from itertools import pairwise

from slimgrad.core.errors import ConfigError

_GRID = 1 << 14


@functools.cache
def rotated_variance_bound(levels: tuple[float, ...], block: int) -> float:
    """Bound on the relative square error of nearest levels after a random rotation.

    The rotated block has components z_i = sum_j ± x_j / ||x|| with random signs. Let q_i be the
    level ± l_j nearest to z_i, and the scale keep the projection on x. With c the angle between z
    and q the relative error is (1 - cos^2 c) / cos^2 c, and

    * 1 - cos^2 c is at most the mean of (|z_i| - |q_i|)^2; since P(|z_i| > t) is at most
      min(1, 2 exp(-t^2 / 2)) (Hoeffding), its expectation is at most
      D = e(0) + integral of e'(t) P(t) dt, where e(t) is the largest error of a magnitude up to t;
    * cos^2 c = B^2 / A with A = mean q^2 and B = mean |z q|. Nearest levels give A <= 2 B + l_0^2,
      and |q_i| >= g |z_i| with g the least of l_m / sqrt(block) and of every level over the upper
      end of its cell gives B >= g. So 1 / cos^2 c is at most 2 / g + (l_0 / g)^2.

    Guarantee: E||x^ - x||^2 <= bound ||x||^2 for every x of at most ``block`` components. The bound
    is far above what is met: for components that are nearly normal after the rotation the error is
    D / (1 - D) with D = ``normal_distortion(levels)``.

    Args:
        levels: magnitudes in standard deviations of z, ascending from above 0.
        block: order of the Hadamard matrix, >= 1.

    Raises:
        ConfigError: levels that do not ascend from above 0, or a bad ``block``.

    >>> from slimgrad.theory import normal_levels
    >>> round(rotated_variance_bound(normal_levels(4), 512), 2)
    0.91
    """
    if not levels or levels[0] <= 0 or not all(a < b for a, b in pairwise(levels)):
        raise ConfigError(f"levels must ascend strictly from above 0, got {levels!r}")
    if isinstance(block, bool) or not isinstance(block, int) or block < 1:
        raise ConfigError(f"block must be an integer >= 1, got {block!r}")
    widest = math.sqrt(block)
    ends = [(low + high) / 2 for low, high in pairwise(levels)]
    slope = min([levels[-1] / widest, *(low / end for low, end in zip(levels, ends, strict=False))])
    largest_share = 2.0 / slope + (levels[0] / slope) ** 2
    distortion, worst = 0.0, 0.0
    for step in range(_GRID):
        low, high = widest * step / _GRID, widest * (step + 1) / _GRID
        error = max(_error(levels, ends, t) for t in (low, high, *_ends_between(ends, low, high)))
        if error > worst:
            distortion += (error - worst) * min(1.0, 2.0 * math.exp(-0.5 * low * low))
            worst = error
    return distortion * largest_share


def _error(levels: tuple[float, ...], ends: list[float], magnitude: float) -> float:
    nearest = sum(magnitude > end for end in ends)
    return (magnitude - levels[nearest]) ** 2


def _ends_between(ends: list[float], low: float, high: float) -> list[float]:
    return [end for end in ends if low < end < high]
