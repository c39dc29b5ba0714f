"""How noisy gradients are, relative to their size: the published measure, and one that works."""

from __future__ import annotations

import numpy as np

from slimgrad.core.errors import ConfigError
from slimgrad.theory.arguments import checked_array

_PUBLISHED_FLOOR = 1e-7


def normalised_variance_printed(
    first: np.ndarray | list[list[float]], fresh: np.ndarray | list[list[float]]
) -> float:
    """The published measure: mean over components of sum_k (m - g_k)^2 / (sum_k g_k^2 + 1e-7).

    m is the mean of the gradients ``first``, g_k are those of ``fresh``.

    Not a share of anything: for pure noise of K fresh gradients about a mean of M it is
    1 + K / (M (K - 2)), 1.125 for ten and ten, and so it cannot tell a large variance from a
    larger one. ``noise_to_signal`` can.

    Args:
        first: (M, n), gradients whose mean is taken.
        fresh: (K, n), other gradients of the same parameters.

    Raises:
        ConfigError: arrays of other shapes, or values that are not finite.

    >>> round(normalised_variance_printed([[1.0, 2.0]], [[1.0, 4.0]]), 6)
    0.125

    References:
        Ramezani-Kebrya, Faghri, Markov, Aksenov, Alistarh, Roy (2021), the figures of normalised
        variance, as their plotting code computes it.
    """
    first, fresh = _checked(first, fresh)
    squares = ((first.mean(0) - fresh) ** 2).sum(0)
    return float((squares / ((fresh**2).sum(0) + _PUBLISHED_FLOOR)).mean())


def noise_to_signal(
    first: np.ndarray | list[list[float]], fresh: np.ndarray | list[list[float]]
) -> float:
    """Variance of a gradient over the squared norm of its mean, both estimated without bias.

    The sum over components of mean_k (g_k - m)^2 / (1 + 1 / M) is the variance; <m, mean_k g_k>
    is the squared norm of the mean, since ``first`` and ``fresh`` are independent. Infinite where
    no mean shows.

    Args:
        first: (M, n), gradients whose mean m is taken.
        fresh: (K, n), other gradients of the same parameters.

    Raises:
        ConfigError: arrays of other shapes, or values that are not finite.

    >>> noise_to_signal([[1.0, 2.0]], [[1.0, 4.0]])
    0.2222222222222222
    """
    first, fresh = _checked(first, fresh)
    mean = first.mean(0)
    variance = float(((fresh - mean) ** 2).mean(0).sum()) / (1 + 1 / len(first))
    signal = float(mean @ fresh.mean(0))
    return variance / signal if signal > 0 else float("inf")


def _checked(
    first: np.ndarray | list[list[float]], fresh: np.ndarray | list[list[float]]
) -> tuple[np.ndarray, np.ndarray]:
    first, fresh = (
        checked_array(name, values, ndim=2) for name, values in (("first", first), ("fresh", fresh))
    )
    if first.shape[1] != fresh.shape[1]:
        raise ConfigError(
            f"first has {first.shape[1]} components and fresh {fresh.shape[1]}; they must agree"
        )
    return first, fresh
