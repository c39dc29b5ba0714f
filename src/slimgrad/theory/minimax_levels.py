"""Levels of least worst case: for every vector, not for a measured distribution."""

from __future__ import annotations

import math

from slimgrad.theory.arguments import checked_integer, checked_norm
from slimgrad.theory.levels import exponential_levels, uniform_levels
from slimgrad.theory.line_search import least_point
from slimgrad.theory.relaxation import least_dual_point
from slimgrad.theory.variance import variance_bound

MOST_INNER_LEVELS = 2**15
HALVINGS = 80


def optimal_ratio(s: int, n: int, norm: str = "l2") -> float:
    """The ratio p of ``exponential_levels(s, p)`` with the least variance bound for n components.

    Minimises ``variance_bound(exponential_levels(s, p), n, norm)`` over p; for the l2 norm and
    p^s sqrt(n) <= (1 + p)^2 / (2 p) that is (1 - p)^2 / (4 p) + p^(2s + 1) n / (1 + p)^2.

    Args:
        s: levels strictly between 0 and 1, >= 1.
        n: length of a bucket in components, >= 1.
        norm: "l2" or "linf", of the bucket.

    Returns:
        The ratio, 0 < ratio < 1.

    Raises:
        ConfigError: ``s`` or ``n`` out of range, an unknown norm.

    >>> round(optimal_ratio(6, 8192), 3)
    0.412

    References:
        Ramezani-Kebrya et al. (2021), Figure 2, with the sharper bound of ``variance_bound``.
    """
    s = checked_integer("s", s, 1, MOST_INNER_LEVELS)
    n, norm = checked_integer("n", n, 1), checked_norm(norm)
    # Scanned by its logarithm: the best ratio falls with n, to about n**(-1 / (2 s)).
    least = max(math.log(1e-6), math.log(1e-300) / s)
    return math.exp(
        least_point(
            lambda log_ratio: variance_bound(exponential_levels(s, math.exp(log_ratio)), n, norm),
            least,
            math.log(1 - 1e-6),
        )
    )


def minimax_levels(s: int, n: int, norm: str = "l2") -> tuple[float, ...]:
    """The grid 0 < l_1 < ... < l_s < 1 of least worst case over all vectors of n components.

    For the l2 norm the relaxed worst case is min over lambda of lambda + n mu, where mu is the
    largest phi(r) - lambda r^2. For given lambda and mu each bin is made as wide as mu allows:
    l_1 = 2 sqrt(mu (1 + lambda)), then from a to
    a (1 + 2 lambda) + sqrt(a^2 ((1 + 2 lambda)^2 - 1) + 4 mu (1 + lambda)).
    The least mu that reaches 1 in s + 1 bins gives the best grid for that lambda. For the linf
    norm it is the better of the best exponential and the uniform grid, by ``variance_bound``.

    Args:
        s: levels strictly between 0 and 1, >= 0: 2**(bits - 1) - 2 for a symbol with sign and zero.
        n: length of a bucket in components, >= 1.
        norm: "l2" or "linf", of the bucket.

    Returns:
        Ascending levels, 0 and 1 included.

    Raises:
        ConfigError: ``s`` or ``n`` out of range, an unknown norm.

    >>> [round(level, 4) for level in minimax_levels(2, 512)]
    [0.0, 0.0534, 0.2371, 1.0]
    """
    s = checked_integer("s", s, 0, MOST_INNER_LEVELS)
    n = checked_integer("n", n, 1)
    if s == 0:
        return (0.0, 1.0)
    if checked_norm(norm) == "linf":
        grids = [exponential_levels(s, optimal_ratio(s, n, norm)), uniform_levels(s + 1)]
        return min(grids, key=lambda grid: variance_bound(grid, n, norm))
    limit = least_dual_point(uniform_levels(s + 1), n).value
    best = least_point(lambda price: price + n * _least_gain(price, s), 0.0, limit)
    return _widest_grid(best, _least_gain(best, s), s)


def _edges(price: float, gain: float, s: int) -> list[float]:
    """Upper ends of s + 1 bins from 0, each as wide as ``gain`` allows; stops beyond 1."""
    edges = [2 * math.sqrt(gain * (1 + price))]
    for _ in range(s):
        a = edges[-1]
        if a >= 1:
            break
        steep = 1 + 2 * price
        edges.append(a * steep + math.sqrt(a * a * (steep * steep - 1) + 4 * gain * (1 + price)))
    return edges


def _least_gain(price: float, s: int) -> float:
    low, high = 0.0, 0.25
    for _ in range(HALVINGS):
        middle = (low + high) / 2
        low, high = (low, middle) if _edges(price, middle, s)[-1] >= 1 else (middle, high)
    return high


def _widest_grid(price: float, gain: float, s: int) -> tuple[float, ...]:
    """The edges scaled to end at 1; scaling down narrows every bin, which hurts nobody."""
    edges = _edges(price, gain, s)
    edges += [edges[-1] * (1 + k) for k in range(1, s + 2 - len(edges))]
    return (0.0, *(edge / edges[-1] for edge in edges[:-1]), 1.0)
