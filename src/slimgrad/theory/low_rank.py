"""Squared error of sending a matrix as a product of two thin ones."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from slimgrad.core.errors import ConfigError
from slimgrad.theory.arguments import checked_array, checked_integer


def truncation_error(singular_values: Sequence[float] | np.ndarray, rank: int) -> float:
    """Relative squared error of the best approximation of the given rank.

    sum_{i > rank} s_i^2 / sum_i s_i^2, at most 1 - rank / min(rows, columns).

    Guarantee: no matrix of that rank is closer (Eckart, Young 1936).

    Args:
        singular_values: all of them, >= 0, in any order, not all zero.
        rank: >= 0.

    Raises:
        ConfigError: values that are no singular values, or a bad rank.

    >>> truncation_error([3.0, 4.0], 1)
    0.36
    """
    energies = _energies(singular_values)
    return float(energies[checked_integer("rank", rank) :].sum())


def power_iteration_error_bound(singular_values: Sequence[float] | np.ndarray, rank: int) -> float:
    """Bound on the expected relative squared error of one PowerSGD step from a random start.

    M is sent as P P^T M with P an orthonormal basis of M Q, Q normal with ``rank`` columns. The
    bound is the least, over k from 0 to rank - 2, of
    (1 + k / (rank - k - 1)) sum_{i > k} s_i^2 / sum_i s_i^2.

    Guarantee: for a fresh normal Q. For a warm start, the usual case, only 1 is proven: a
    projection never enlarges. ``truncation_error`` is a lower bound for any start.

    Args:
        singular_values: all of them, >= 0, in any order, not all zero.
        rank: columns of Q, >= 1.

    Raises:
        ConfigError: values that are no singular values, or a bad rank.

    >>> power_iteration_error_bound([1.0, 0.1, 0.1, 0.1], 3) < 0.06
    True

    References:
        Halko, Martinsson, Tropp (2011), Theorem 10.5; Vogels, Karimireddy, Jaggi (2019).
    """
    energies = _energies(singular_values)
    rank = checked_integer("rank", rank, 1)
    if rank >= len(energies):
        return 0.0
    tails = 1 - np.concatenate([[0.0], np.cumsum(energies)])
    k = np.arange(0, max(1, rank - 1))
    factors = np.where(k == 0, 1.0, 1 + k / np.maximum(rank - k - 1, 1))
    return float(max(0.0, (factors * tails[k]).min()))


def _energies(singular_values: Sequence[float] | np.ndarray) -> np.ndarray:
    values = checked_array("singular_values", singular_values)
    if values.min() < 0 or values.max() == 0:
        raise ConfigError(
            f"singular_values must be >= 0 and not all zero, got {values.min()} to {values.max()}"
        )
    squares = (np.sort(values)[::-1] / values.max()) ** 2
    return squares / squares.sum()
