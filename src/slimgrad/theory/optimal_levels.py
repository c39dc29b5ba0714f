"""Levels that suit a measured distribution of magnitudes."""

from __future__ import annotations

import numpy as np

from slimgrad.core.errors import ConfigError
from slimgrad.theory.arguments import checked_integer
from slimgrad.theory.density import MagnitudeDensity, _expected_variance, expected_variance
from slimgrad.theory.levels import exponential_levels, uniform_levels
from slimgrad.theory.line_search import least_point

MOST_INNER_LEVELS = 2**15


def optimal_levels(
    density: MagnitudeDensity, s: int, *, sweeps: int = 300, tolerance: float = 1e-9
) -> tuple[float, ...]:
    """The grid 0 < l_1 < ... < l_s < 1 of least expected variance for ``density``.

    Coordinate descent. Between neighbours a and c the expected variance is convex in the level l
    and least where F(l) = F(c) - integral over (a, c] of (r - a) / (c - a) dF. Levels of odd and
    of even rank move in turn, from three starts (quantiles, equal steps, powers of the best
    ratio); the best end is kept.

    Guarantee: never worse than ``uniform_levels(s + 1)`` and the best ``exponential_levels(s)``
    for this density; a local optimum, not always the global one.

    Args:
        density: distribution of the normalised magnitudes.
        s: levels strictly between 0 and 1, >= 0: 2**(bits - 1) - 2 for a symbol with sign and zero.
        sweeps: most rounds for each start, >= 1.
        tolerance: stop when a round lowers the variance by less than this share.

    Returns:
        Ascending levels, 0 and 1 included.

    Raises:
        ConfigError: ``s`` or ``sweeps`` out of range, or fewer distinct magnitudes than levels.

    >>> density = MagnitudeDensity([0.1] * 6 + [0.3] * 3 + [1.0])
    >>> optimal_levels(density, 2)
    (0.0, 0.1, 0.3, 1.0)

    References:
        Faghri, Tabrizian, Markov, Alistarh, Roy, Ramezani-Kebrya (2020), section 3 (ALQ).
    """
    s = checked_integer("s", s, 0, MOST_INNER_LEVELS)
    sweeps = checked_integer("sweeps", sweeps, 1)
    if s == 0:
        return (0.0, 1.0)
    distinct = np.unique(density.magnitudes)
    distinct = distinct[(distinct > 0) & (distinct < 1)]
    if len(distinct) < s:
        raise ConfigError(
            f"the density has {len(distinct)} distinct magnitudes between 0 and 1, "
            f"too few for s={s} levels; take s <= {len(distinct)}"
        )
    quantiles = np.unique(density.quantile(np.arange(1, s + 1) / (s + 1)))
    starts = [
        np.asarray(uniform_levels(s + 1)),
        np.asarray(exponential_levels(s, expected_optimal_ratio(density, s))),
    ]
    if len(quantiles) == s and quantiles[0] > 0 and quantiles[-1] < 1:
        starts.append(np.concatenate([[0.0], quantiles, [1.0]]))
    ends = [_descend(start, density, sweeps, tolerance) for start in starts]
    best = min(ends, key=lambda grid: _expected_variance(grid, density))
    return tuple(float(level) for level in best)


def expected_optimal_ratio(density: MagnitudeDensity, s: int) -> float:
    """The ratio of ``exponential_levels`` with least expected variance for ``density``.

    Scans the ratio and refines around the best one, so it does not depend on a step size as
    gradient descent does.

    Args:
        density: distribution of the normalised magnitudes.
        s: levels strictly between 0 and 1, >= 1.

    Returns:
        The ratio, 0 < ratio < 1.

    Raises:
        ConfigError: ``s`` out of range or a density with all its weight at 0.

    >>> density = MagnitudeDensity([0.2] * 25 + [1.0])
    >>> round(expected_optimal_ratio(density, 1), 3)
    0.2

    References:
        Faghri, Tabrizian, Markov, Alistarh, Roy, Ramezani-Kebrya (2020), section 3 (AMQ).
    """
    s = checked_integer("s", s, 1, MOST_INNER_LEVELS)
    least = max(1e-4, 1e-300 ** (1 / s))
    return least_point(
        lambda ratio: expected_variance(exponential_levels(s, ratio), density), least, 1 - 1e-6
    )


def _descend(
    grid: np.ndarray, density: MagnitudeDensity, sweeps: int, tolerance: float
) -> np.ndarray:
    value = _expected_variance(grid, density)
    for _ in range(sweeps):
        moved = grid
        for parity in (1, 2):
            moved = _moved(moved, density, np.arange(parity, len(grid) - 1, 2))
        lower = _expected_variance(moved, density)
        if not lower < value or (np.diff(moved) <= 0).any():
            break
        gained, grid, value = value - lower, moved, lower
        if gained <= tolerance * value:
            break
    return grid


def _moved(grid: np.ndarray, density: MagnitudeDensity, ranks: np.ndarray) -> np.ndarray:
    """The grid with the levels of these ranks at their best place between their neighbours."""
    low, high = grid[ranks - 1], grid[ranks + 1]
    mass_low, first_low, _ = density.moments(low)
    mass_high, first_high, _ = density.moments(high)
    share = (high * mass_high - low * mass_low - (first_high - first_low)) / (high - low)
    best = density.quantile(share)
    inside = (low < best) & (best < high) & (mass_high > mass_low)
    moved = grid.copy()
    moved[ranks] = np.where(inside, best, grid[ranks])
    return moved
