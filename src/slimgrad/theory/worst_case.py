"""The vector that rounding to a grid hurts most, and the variance it suffers (l2 norm)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from slimgrad.core.errors import ConfigError
from slimgrad.theory.arguments import checked_grid, checked_integer
from slimgrad.theory.relaxation import dual_point, least_dual_point

MAX_CANDIDATES = 200_000
BISECTIONS = 62
SLACK = 1e-12
# Each multiplier of the dual prunes by its own inequality; those near the best one prune most.
OFFSETS = (0.0, *(sign * 4.0**-k for k in range(1, 8) for sign in (1, -1)))


@dataclass(frozen=True)
class WorstCase:
    """A unit vector of largest variance.

    Attributes:
        variance: E||Q(v) - v||^2 of that vector, the exact maximum over all v of n components.
        counts: for each bin (between neighbouring levels, from the bottom) how many components
            lie in it; they add up to n.
        magnitudes: the common magnitude of the components of each bin; 0 where there is none.
    """

    variance: float
    counts: tuple[int, ...]
    magnitudes: tuple[float, ...]


def worst_case(levels: Sequence[float], n: int) -> WorstCase:
    """The exact maximum of the variance over unit vectors, and a vector that attains it.

    Maximises sum_i phi(r_i), phi(r) = (r - l_j)(l_{j+1} - r) in bin j, subject to
    sum_i r_i^2 = 1. Inside a bin equal magnitudes are best, so the unknowns are the number of
    components in each bin. For given numbers r_j = clip((l_j + l_{j+1}) / (2 c), l_j, l_{j+1})
    with c set by the norm. The numbers are enumerated; every multiplier of the dual rules out
    those that cannot reach the best value known.

    Guarantee: exact up to rounding errors; normalisation by the l2 norm.

    Args:
        levels: ascending grid of non-negative levels, 0 and 1 included.
        n: length of the vector, >= 1.

    Returns:
        The variance, counts and magnitudes.

    Raises:
        ConfigError: bad levels or ``n``, or too many counts left to enumerate; then
            ``worst_case_variance(levels, n, relaxed=True)`` gives a bound.

    >>> worst = worst_case((0, 0.5, 1), 4)
    >>> round(worst.variance, 9), worst.counts
    (0.236067977, (2, 2))

    References:
        Ramezani-Kebrya et al. (2021), Theorem 9 (integer program).
    """
    grid = checked_grid(levels)
    n = checked_integer("n", n, 1)
    start = _climb(grid, n)
    candidates = _candidates(grid, n, start.variance)
    best = start
    for chunk in np.array_split(candidates, len(candidates) // 20_000 + 1):
        best = max(best, _best_of(grid, chunk), key=lambda found: found.variance)
    return best


def worst_case_variance(levels: Sequence[float], n: int, *, relaxed: bool = False) -> float:
    """The largest relative variance over all vectors of n components (l2 norm).

    Guarantee: exact with ``relaxed=False``; otherwise an upper bound on it that is at most
    ``variance_bound``: numbers of components may be real, which leaves the dual problem
    min over lambda of lambda + n max(0, max over r of phi(r) - lambda r^2).

    Args:
        levels: ascending grid of non-negative levels, 0 and 1 included.
        n: length of a bucket in components, >= 1.
        relaxed: bound by the relaxation, in a time that does not depend on n.

    Returns:
        Largest E||Q(v) - v||^2 / ||v||^2.

    Raises:
        ConfigError: bad levels or ``n``, or an exact search that is too large.

    >>> round(worst_case_variance((0, 0.25, 0.5, 1), 32), 6)
    0.546338
    >>> round(worst_case_variance((0, 0.25, 0.5, 1), 32, relaxed=True), 6)
    0.550893

    References:
        Ramezani-Kebrya et al. (2021), Theorem 9 and its relaxation Q1.
    """
    if not relaxed:
        return worst_case(levels, n).variance
    return least_dual_point(checked_grid(levels), checked_integer("n", n, 1)).value


def _best_magnitudes(grid: tuple[float, ...], counts: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Magnitudes and variance of the best unit vector for each row of counts; -1 if there is none.

    With u = 1 / c the norm grows from all components at their lower level (u = 0) to all at
    their upper one (u = 2).
    """
    low, high = np.asarray(grid[:-1]), np.asarray(grid[1:])
    middle = (low + high) / 2
    below, above = np.zeros((len(counts), 1)), np.full((len(counts), 1), 2.0)
    for _ in range(BISECTIONS):
        u = (below + above) / 2
        r = np.clip(middle * u, low, high)
        short = (counts * r**2).sum(axis=1, keepdims=True) < 1
        below, above = np.where(short, u, below), np.where(short, above, u)
    r = np.clip(middle * above, low, high)
    variances = (counts * (r - low) * (high - r)).sum(axis=1)
    possible = ((counts * low**2).sum(axis=1) <= 1 + SLACK) & (
        (counts * high**2).sum(axis=1) >= 1 - SLACK
    )
    return r, np.where(possible, variances, -1.0)


def _best_of(grid: tuple[float, ...], counts: np.ndarray) -> WorstCase:
    if len(counts) == 0:
        return WorstCase(-1.0, (), ())
    magnitudes, variances = _best_magnitudes(grid, counts)
    row = int(variances.argmax())
    used = np.where(counts[row] > 0, magnitudes[row], 0.0)
    return WorstCase(
        float(variances[row]),
        tuple(int(count) for count in counts[row]),
        tuple(float(r) for r in used),
    )


def _climb(grid: tuple[float, ...], n: int) -> WorstCase:
    """A good vector: move components between neighbouring bins, or from and to the first."""
    bins = len(grid) - 1
    pairs = {(i, j) for i in range(bins) for j in range(bins) if i * j == 0 or abs(i - j) == 1}
    moves = np.zeros((len(pairs), bins), dtype=np.int64)
    for row, (i, j) in enumerate(sorted(pairs)):
        moves[row, i] -= 1
        moves[row, j] += 1
    steps = np.concatenate([moves * 2**k for k in range(n.bit_length())])
    counts = np.zeros((bins, bins), dtype=np.int64)
    for j in range(bins):
        counts[j, j] = min(n, int((1 + SLACK) / grid[j] ** 2)) if grid[j] > 1e-9 else n
        counts[j, 0] += n - counts[j, j] if j else 0
    best = _best_of(grid, counts)
    while True:
        near = np.asarray(best.counts) + steps
        better = _best_of(grid, near[(near >= 0).all(axis=1)])
        if better.variance <= best.variance:
            return best
        best = better


def _candidates(grid: tuple[float, ...], n: int, reached: float) -> np.ndarray:
    """All rows of counts that no multiplier shows to stay below the variance ``reached``."""
    point = least_dual_point(grid, n)
    scale = max(point.value, SLACK)
    multipliers = [max(-1.0, point.multiplier + offset * scale) for offset in OFFSETS]
    gains = np.stack([dual_point(grid, n, at).gains for at in multipliers])
    needed = reached - np.asarray(multipliers) - SLACK * (1 + reached)
    bins = len(grid) - 1
    rows, totals = np.zeros((1, bins), dtype=np.int64), np.zeros((1, len(multipliers)))
    for j in range(bins - 1, 0, -1):
        most = n if n * grid[j] ** 2 <= 1 else int((1 + SLACK) / grid[j] ** 2)
        # The value for 0, 1, 2, ... components in the bin is a line; see where it is high enough.
        rest = gains[:, :j].max(axis=1)
        left = n - rows.sum(axis=1, keepdims=True)
        room = totals + left * rest - needed
        slope = gains[:, j] - rest
        with np.errstate(divide="ignore", invalid="ignore"):
            crossing = np.where(slope != 0, -room / slope, np.where(room >= 0, -np.inf, np.inf))
        first = np.where(slope >= 0, crossing, 0.0).max(axis=1)
        last = np.where(slope < 0, crossing, float(most)).min(axis=1)
        first = np.clip(np.ceil(first - SLACK * n), 0, most + 1).astype(np.int64)
        last = np.minimum(np.clip(np.floor(last + SLACK * n), -1, most), left[:, 0])
        widths = np.maximum(last.astype(np.int64) - first + 1, 0)
        if widths.sum() > MAX_CANDIDATES:
            raise ConfigError(
                f"the exact worst case of {len(grid)} levels and n={n} needs more than "
                f"{MAX_CANDIDATES} trials; take relaxed=True (a bound, here {point.value:.6g})"
            )
        parents = np.repeat(np.arange(len(rows)), widths)
        start = np.repeat(np.cumsum(widths) - widths, widths)
        added = np.arange(len(parents)) - start + first[parents]
        rows, totals = rows[parents], totals[parents] + added[:, None] * gains[:, j]
        rows[:, j] = added
        fits = (rows * np.asarray(grid[:-1]) ** 2).sum(axis=1) <= 1 + SLACK
        rows, totals = rows[fits], totals[fits]
    rows[:, 0] = n - rows.sum(axis=1)
    return rows
