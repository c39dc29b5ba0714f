"""Methods whose bound is one line: signs, ternary values, powers of a ratio."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from slimgrad.core.errors import ConfigError
from slimgrad.theory.arguments import checked_array, checked_integer, checked_number


def sign_contraction(vector: Sequence[float] | np.ndarray) -> float:
    """Share of the squared norm that (||v||_1 / n) sign(v) keeps: ||v||_1^2 / (n ||v||_2^2).

    Guarantee: ||C(v) - v||^2 = (1 - share) ||v||^2, an equality; the share is at least 1 / n, and
    2 / pi for long normal vectors. Biased, so error feedback is needed.

    Args:
        vector: flat, finite, not all zero.

    Raises:
        ConfigError: a vector that is empty, zero or not finite.

    >>> sign_contraction([3.0, -4.0])
    0.98

    References:
        Karimireddy, Rebjock, Stich, Jaggi (2019), Lemma 8.
    """
    magnitudes = np.abs(checked_array("vector", vector))
    largest = magnitudes.max()
    if largest == 0:
        raise ConfigError("the vector is zero, so the share of its norm has no meaning")
    scaled = magnitudes / largest
    return float(scaled.sum() ** 2 / (len(scaled) * (scaled**2).sum()))


def terngrad_variance_bound(n: int) -> float:
    """Bound (sqrt(n) - 1) / 2 on the relative variance of rounding to 0 and +-max |v_i|.

    Guarantee: unbiased; attained by one component 1 and n - 1 of 1 / (1 + sqrt(n)). This is
    ``variance_bound((0, 1), n, "linf")``.

    Args:
        n: components that share the maximum, >= 1.

    Raises:
        ConfigError: ``n`` out of range.

    >>> terngrad_variance_bound(9)
    1.0

    References:
        Wen, Xu, Yan, Wu, Wang, Chen, Li (2017), "TernGrad"; bound as in ``variance_bound``.
    """
    return (math.sqrt(checked_integer("n", n, 1)) - 1) / 2


def natural_variance_bound(ratio: float = 0.5) -> float:
    """Bound (1 - p)^2 / (4 p) on the relative variance of rounding to all powers of p.

    Guarantee: unbiased; holds for each component, needs no norm; 1/8 for powers of two. Attained
    by a component at 2 p / (1 + p) times a power.

    Args:
        ratio: p, quotient of neighbouring levels, 0 < p < 1.

    Raises:
        ConfigError: ``ratio`` out of range.

    >>> natural_variance_bound()
    0.125

    References:
        Horvath, Ho, Horvath, Sahu, Canini, Richtarik (2019), "Natural compression", Theorem 1.
    """
    p = checked_number("ratio", ratio, 0, 1, open_low=True, open_high=True)
    return (1 - p) / p * (1 - p) / 4
