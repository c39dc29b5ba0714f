"""How many components survive the rounding."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from slimgrad.core.errors import ConfigError
from slimgrad.theory.arguments import checked_array, checked_grid, checked_integer, checked_norm


def expected_nonzeros(levels: Sequence[float], magnitudes: Sequence[float] | np.ndarray) -> float:
    """Expected number of components that are not rounded to zero: sum_i min(1, r_i / l_1).

    Args:
        levels: ascending grid of non-negative levels, 0 and 1 included.
        magnitudes: r_i = |v_i| / norm(v) of one or more buckets, 0 to 1.

    Raises:
        ConfigError: bad levels or magnitudes.

    >>> expected_nonzeros((0, 0.5, 1), [0.25, 0.75, 0.0])
    1.5
    """
    grid, r = checked_grid(levels), checked_array("magnitudes", magnitudes)
    if r.min() < 0 or r.max() > 1:
        raise ConfigError(
            f"magnitudes must be from 0 to 1, got {r.min()} to {r.max()}; divide by the norm"
        )
    return float(np.minimum(1.0, r / grid[1]).sum())


def expected_nonzeros_bound(levels: Sequence[float], n: int, norm: str = "l2") -> float:
    """Bound on the expected number of components that are not rounded to zero.

    * l2: min(n, sqrt(n) / l_1); attained by equal components.
    * linf: n, since sum_i r_i can reach n when the largest component is the scale.

    Guarantee: for every vector of n components.

    Args:
        levels: ascending grid of non-negative levels, 0 and 1 included.
        n: length of a bucket in components, >= 0.
        norm: "l2" or "linf", of the bucket.

    Returns:
        Components, not rounded to an integer.

    Raises:
        ConfigError: levels that do not ascend from 0 to 1, a bad ``n``, an unknown norm.

    >>> expected_nonzeros_bound((0, 0.25, 0.5, 1), 4096)
    256.0

    References:
        Ramezani-Kebrya et al. (2021), Lemma 17, without its superfluous term 2^(2s).
    """
    grid, n = checked_grid(levels), checked_integer("n", n)
    if checked_norm(norm) == "linf":
        return float(n)
    return min(float(n), math.sqrt(n) / grid[1])


def lemma17_printed(s: int, n: int) -> float:
    """Lemma 17 as printed: 2^(2s) + 2^s sqrt(n). A bound, but a loose one.

    Args:
        s: levels strictly between 0 and 1, powers of 1/2; 0 to 500.
        n: length of a bucket in components, >= 0.

    Raises:
        ConfigError: ``s`` or ``n`` out of range.

    >>> lemma17_printed(2, 4096)
    272.0

    References:
        Ramezani-Kebrya et al. (2021), Lemma 17.
    """
    s, n = checked_integer("s", s, 0, 500), checked_integer("n", n)
    return 2.0 ** (2 * s) + 2.0**s * math.sqrt(n)
