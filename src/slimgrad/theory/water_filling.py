"""Sampling probabilities of least variance for a budget."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from slimgrad.theory.arguments import checked_number, checked_weights

LEAST_BUDGET = 1e-9


def water_filling(
    scores: Sequence[float] | np.ndarray, budget: float, *, uniform_share: float = 0.0
) -> np.ndarray:
    """Probabilities p_r = min(1, score_r / lambda) that add up to ``budget``.

    They minimise sum_r (1 / p_r - 1) score_r^2, the variance of keeping each term of a sum with
    its own probability and dividing by it, when score_r is the norm of term r. Terms of
    probability 1 are kept always.

    Args:
        scores: norms of the terms, >= 0, not all zero.
        budget: expected number of terms kept, >= 1e-9. A budget above the number of positive scores
            keeps exactly those.
        uniform_share: share a, 0 to 1, of the budget spread evenly:
            (1 - a) p_r + a min(1, budget / len(scores)). It bounds the weights 1 / p_r when scores
            are stale.

    Returns:
        float64 array, one probability for each score; 0 for a score of 0 without uniform share.

    Raises:
        ConfigError: scores that are none, or a budget or share out of range.

    >>> water_filling([3.0, 1.0, 1.0], 2).tolist()
    [1.0, 0.5, 0.5]

    References:
        Wang et al. (2018), "ATOMO", algorithm 1; Liu et al. (2023), "Winner-take-all column row
        sampling", whose kept head are the terms of probability 1.
    """
    weights = checked_weights("scores", scores)
    weights = weights / weights.max()
    budget = checked_number("budget", budget, LEAST_BUDGET)
    share = checked_number("uniform_share", uniform_share, 0, 1)
    positive = np.flatnonzero(weights)
    p = np.zeros(len(weights))
    if budget >= len(positive):
        p[positive] = 1.0
    else:
        ranked = np.sort(weights[positive])[::-1]
        kept = np.arange(int(np.ceil(budget)))
        # Sums from the smallest up, so that a large head does not swallow a small tail.
        tails = np.cumsum(ranked[::-1])[::-1][kept]
        levels = tails / (budget - kept)
        level = levels[np.argmax(ranked[kept] <= levels)]
        p[positive] = np.minimum(1.0, weights[positive] / level)
    return (1 - share) * p + share * min(1.0, budget / len(weights))
