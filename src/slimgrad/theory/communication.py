"""Bits that training sends until it reaches an accuracy."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from slimgrad.core.errors import ConfigError
from slimgrad.theory.arguments import checked_grid, checked_integer, checked_number
from slimgrad.theory.density import MagnitudeDensity, expected_variance
from slimgrad.theory.elias import elias_bits_bound
from slimgrad.theory.levels import exponential_levels, uniform_levels
from slimgrad.theory.sparsity import expected_nonzeros_bound
from slimgrad.theory.variance import variance_bound


@dataclass(frozen=True)
class BitsToGap:
    """What a worker sends until the expected gap is reached.

    Attributes:
        variance_bound: relative variance of the quantizer.
        steps: steps that suffice.
        bits_per_step: bound on the expected bits a worker sends in a step.
        bits: steps * bits_per_step, for one worker.
    """

    variance_bound: float
    steps: int
    bits_per_step: float
    bits: float


def bits_to_gap(
    levels: Sequence[float],
    n: int,
    gap: float,
    *,
    radius: float,
    second_moment: float,
    smoothness: float,
    world_size: int = 1,
) -> BitsToGap:
    """Bits of Elias-coded gradients that suffice for E f - f* <= gap on a convex problem.

    With eps the variance bound of the grid under the l2 norm of the whole gradient, and
    sigma^2 = (1 + eps) B / W: T = max(4 R^2 sigma^2 / gap^2, beta R^2 / gap) steps of averaged
    SGD, times ``elias_bits_bound``.

    Guarantee: for convex f with beta-Lipschitz gradient, unbiased gradients of second moment at
    most B, the start within R of a minimiser, and the step size 1 / (beta + sigma sqrt(T) / R).

    Args:
        levels: ascending grid of non-negative levels, 0 and 1 included.
        n: components of the gradient, >= 1.
        gap: wanted distance to the least value, > 0.
        radius: R, distance of the start to a minimiser, > 0.
        second_moment: B, bound on E||g||^2, > 0.
        smoothness: beta, > 0.
        world_size: W, workers whose gradients are averaged, >= 1.

    Returns:
        Steps and bits for one worker.

    Raises:
        ConfigError: a value out of range, or more steps than a float64 holds.

    >>> levels = exponential_levels(3)
    >>> answer = bits_to_gap(levels, 10**6, 0.1, radius=1, second_moment=1, smoothness=1)
    >>> answer.steps
    50000

    References:
        Ramezani-Kebrya et al. (2021), Theorems 6 and 13; Bubeck (2015), Theorem 6.3.
    """
    grid, n = checked_grid(levels), checked_integer("n", n, 1)
    gap = checked_number("gap", gap, 0, open_low=True)
    R = checked_number("radius", radius, 0, open_low=True)
    B = checked_number("second_moment", second_moment, 0, open_low=True)
    beta = checked_number("smoothness", smoothness, 0, open_low=True)
    workers = checked_integer("world_size", world_size, 1)
    eps = variance_bound(grid, n)
    per_gap = R / gap
    needed = max(4 * per_gap * per_gap * (1 + eps) * B / workers, beta * R * per_gap)
    if not needed < math.inf:
        raise ConfigError(
            f"gap={gap!r} with radius={R!r}, second_moment={B!r} and smoothness={beta!r} asks for "
            "more steps than can be counted; take a larger gap"
        )
    steps = max(1, math.ceil(needed))
    per_step = elias_bits_bound(n, len(grid) - 2, nonzeros=expected_nonzeros_bound(grid, n))
    return BitsToGap(eps, steps, per_step, steps * per_step)


def theorem13_ratio(s: int, n: int) -> float:
    """Theorem 13's bits of NUQSGD over those of QSGD, constants left out.

    sqrt(1 - 4^s / n) (1 - s / log2 sqrt(n)). It tends to 1 as n grows with s fixed: the saving
    does not grow with the dimension unless s grows like log n.

    Args:
        s: levels strictly between 0 and 1, powers of 1/2; 0 or more.
        n: components of the gradient, at least 4^s and at least 2.

    Raises:
        ConfigError: ``s`` out of range, or ``n`` < 4^s.

    >>> round(theorem13_ratio(3, 10**6), 2)
    0.7

    References:
        Ramezani-Kebrya et al. (2021), Theorem 13.
    """
    s = checked_integer("s", s, 0, 29)
    n = checked_integer("n", n, max(2, 4**s))
    return math.sqrt(1 - 4**s / n) * (1 - s / math.log2(math.sqrt(n)))


@dataclass(frozen=True)
class Theorem23:
    """Variances of the vector (1, c/n, ..., c/n), relative to its squared norm.

    Attributes:
        exponential: levels 2^-s, ..., 1/2, 1 under the l2 norm.
        uniform: as many levels at equal steps under the max norm.
        exponential_linf: the exponential levels under the max norm.
        printed_exponential: c (2^-s - c / n).
        printed_uniform: c (1 / (s + 1) - c / n).
    """

    exponential: float
    uniform: float
    exponential_linf: float
    printed_exponential: float
    printed_uniform: float


def theorem23(s: int, n: int, c: float = 1.0) -> Theorem23:
    """NUQSGD against QSGDinf with equally many levels on (1, c/n, ..., c/n).

    Both norms of that vector are nearly 1, so what differs is the grid, not the norm: exponential
    levels under the max norm do as well.

    Args:
        s: levels strictly between 0 and 1, 0 to 500.
        n: length of the vector, >= 2.
        c: 0 < c <= n.

    Returns:
        Exact variances, and the printed approximations for c / n below the smallest level.

    Raises:
        ConfigError: a value out of range.

    >>> result = theorem23(7, 10**5)
    >>> round(result.exponential, 5), round(result.uniform, 5)
    (0.0078, 0.12499)

    References:
        Ramezani-Kebrya et al. (2021), Theorem 23.
    """
    s, n = checked_integer("s", s, 0, 500), checked_integer("n", n, 2)
    c = checked_number("c", c, 0, n, open_low=True)
    small = c / n
    norm = math.sqrt(1 + (n - 1) * small**2)
    counts = [1, n - 1]
    l2 = MagnitudeDensity([1 / norm, small / norm], counts)
    linf = MagnitudeDensity([1.0, small], counts)
    exponential, uniform = exponential_levels(s), uniform_levels(s + 1)
    return Theorem23(
        expected_variance(exponential, l2),
        expected_variance(uniform, linf),
        expected_variance(exponential, linf),
        c * (2.0**-s - small),
        c * (1 / (s + 1) - small),
    )
