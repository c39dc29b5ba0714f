"""Keeping a part of the components."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from slimgrad.theory.arguments import checked_array, checked_integer
from slimgrad.theory.sampling import row_sampling_variance
from slimgrad.theory.water_filling import water_filling


def top_k_error_bound(n: int, k: int) -> float:
    """Bound 1 - k / n on the relative squared error of keeping the k largest components.

    Guarantee: ||C(v) - v||^2 <= (1 - k / n) ||v||^2 for every v; attained by equal components.
    Biased, so error feedback is needed.

    Args:
        n: length of the vector, >= 1.
        k: components kept, 1 to n.

    Raises:
        ConfigError: a value out of range.

    >>> top_k_error_bound(1000, 10)
    0.99

    References:
        Stich, Cordonnier, Jaggi (2018), Lemma A.1.
    """
    n = checked_integer("n", n, 1)
    return 1 - checked_integer("k", k, 1, n) / n


def random_k_variance(n: int, k: int) -> float:
    """Relative variance n / k - 1 of keeping k random components, scaled by n / k.

    Guarantee: unbiased; an equality for every vector.

    Args:
        n: length of the vector, >= 1.
        k: components kept, 1 to n.

    Raises:
        ConfigError: a value out of range.

    >>> random_k_variance(1000, 10)
    99.0

    References:
        Stich, Cordonnier, Jaggi (2018); Wangni, Wang, Liu, Zhang (2018).
    """
    n = checked_integer("n", n, 1)
    return n / checked_integer("k", k, 1, n) - 1


def atomo_variance(coefficients: Sequence[float] | np.ndarray, budget: float) -> float:
    """Relative variance of sampling orthonormal atoms, ``budget`` of them on average.

    v = sum_i c_i a_i; atom i is kept with probability p_i and sent as c_i / p_i:
    sum_i (1 / p_i - 1) c_i^2 / sum_i c_i^2 with the best p_i = min(1, |c_i| / lambda). Atoms are
    components, or singular vectors with singular values as coefficients.

    Guarantee: unbiased; an equality, and no other probabilities with that sum do better.

    Args:
        coefficients: c_i, not all zero.
        budget: expected number of atoms kept, >= 1e-9.

    Raises:
        ConfigError: coefficients that are none or all zero, or a bad budget.

    >>> round(atomo_variance([3.0, 1.0, 1.0], 2), 12)
    0.181818181818

    References:
        Wang, Sievert, Liu, Charles, Papailiopoulos, Wright (2018), "ATOMO", Theorem 5.
    """
    c = np.abs(checked_array("coefficients", coefficients))
    probabilities = water_filling(c, budget)
    scaled = c / c.max()
    return row_sampling_variance(scaled, probabilities) / float((scaled**2).sum())
