"""Variance of unbiased estimates of a weight gradient, which is a sum of many terms."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from slimgrad.core.errors import ConfigError
from slimgrad.theory.arguments import (
    checked_array,
    checked_integer,
    checked_number,
    checked_weights,
)

Numbers = Sequence[float] | np.ndarray
# The squared product of two such numbers is finite; float32 gradients are far below.
LARGEST = 1e70


def row_sampling_variance(scores: Numbers, probabilities: Numbers) -> float:
    """Variance of keeping each term with its own probability and dividing by it.

    The estimate of sum_r g_r x_r^T is sum_r (b_r / p_r) g_r x_r^T with independent b_r that are 1
    with probability p_r; its variance, summed over entries, is
    sum_r (1 / p_r - 1) ||g_r||^2 ||x_r||^2. With x_r - c in place of x_r it is that of the
    difference estimator, which adds the exact (sum_r g_r) c^T; with both rows less the means of
    their block it is that of the second part of the multilevel estimator.

    Guarantee: an equality.

    Args:
        scores: ||g_r|| ||x_r||, >= 0.
        probabilities: p_r, 0 to 1; 0 only where the score is 0.

    Raises:
        ConfigError: unequal lengths, negative scores, or a positive score that is never kept.

    >>> row_sampling_variance([2.0, 1.0], [1.0, 0.5])
    1.0
    """
    s, p = (
        checked_array("scores", scores, most=LARGEST),
        checked_array("probabilities", probabilities),
    )
    if s.shape != p.shape:
        raise ConfigError(f"{len(s)} scores need as many probabilities, got {len(p)}")
    if s.min() < 0 or p.min() < 0 or p.max() > 1:
        raise ConfigError(
            f"scores must be >= 0 and probabilities from 0 to 1, got scores from {s.min()} and "
            f"probabilities from {p.min()} to {p.max()}"
        )
    used = s > 0
    if (p[used] == 0).any():
        raise ConfigError(
            "a term with a positive score has probability 0, which makes the estimate biased; "
            "give it a positive probability"
        )
    return float(((1 / p[used] - 1) * s[used] ** 2).sum())


def row_scores(
    grad_rows: np.ndarray, input_rows: np.ndarray, blocks: Sequence[int] | None = None
) -> np.ndarray:
    """||g_r|| ||x_r|| for each row, after taking away the means of its block when there are any.

    Over a block sum_r g_r x_r^T = count * gmean xmean^T + sum_r (g_r - gmean)(x_r - xmean)^T, so
    the first part can be computed exactly and only the second sampled.

    Args:
        grad_rows: output gradients, rows by filters.
        input_rows: input patches, rows by entries.
        blocks: a block number for each row, or None for no means.

    Returns:
        float64 array, one score for each row.

    Raises:
        ConfigError: arrays that are not two-dimensional, or unequal numbers of rows.

    >>> row_scores(np.array([[3.0, 4.0]]), np.array([[2.0]])).tolist()
    [10.0]
    """
    g = checked_array("grad_rows", grad_rows, ndim=2, most=LARGEST)
    x = checked_array("input_rows", input_rows, ndim=2, most=LARGEST)
    marks = np.arange(len(g)) if blocks is None else checked_array("blocks", blocks)
    if not len(g) == len(x) == len(marks):
        raise ConfigError(
            f"grad_rows, input_rows and blocks must have as many rows, "
            f"got {len(g)}, {len(x)} and {len(marks)}"
        )
    if blocks is not None:
        g, x = g.copy(), x.copy()
        for mark in np.unique(marks):
            inside = marks == mark
            g[inside] = g[inside] - g[inside].mean(axis=0)
            x[inside] = x[inside] - x[inside].mean(axis=0)
    return np.linalg.norm(g, axis=1) * np.linalg.norm(x, axis=1)


def one_term_variance(
    terms: np.ndarray, probabilities: Numbers | None = None, draws: int = 1
) -> float:
    """Variance of estimating a sum by one of its terms, divided by the chance of drawing it.

    (sum_k ||T_k||^2 / q_k - ||sum_k T_k||^2) / draws. Least for q_k proportional to ||T_k||, where
    it is ((sum_k ||T_k||)^2 - ||sum_k T_k||^2) / draws. Terms that are computed always stay out.

    * per-map sampling: terms g_p x_p over the positions of one (sample, filter) map; maps add up.
    * Walsh-Hadamard pairs: the terms H_1, H_2, H_3 beside the exact H_0.
    * decimation with a random phase: the phases' own gradients, q_k = 1 / phases.

    Guarantee: unbiased when every non-zero term can be drawn; an equality.

    Args:
        terms: terms by entries.
        probabilities: q_k >= 0, divided by their sum; None for the best ones.
        draws: independent draws that are averaged, >= 1.

    Raises:
        ConfigError: unequal lengths, or a non-zero term that is never drawn.

    >>> one_term_variance(np.array([[1.0, 0.0], [0.0, 1.0]]))
    2.0
    """
    T = checked_array("terms", terms, ndim=2, most=LARGEST)
    draws = checked_integer("draws", draws, 1)
    norms = np.linalg.norm(T, axis=1)
    total = float((T.sum(axis=0) ** 2).sum())
    if probabilities is None:
        return max(0.0, float(norms.sum()) ** 2 - total) / draws
    weights = checked_weights("probabilities", probabilities)
    if len(weights) != len(T):
        raise ConfigError(f"{len(T)} terms need as many probabilities, got {len(weights)}")
    q, used = weights / weights.sum(), norms > 0
    if (q[used] == 0).any():
        raise ConfigError(
            "a term that is not zero has probability 0, which makes the estimate biased; "
            "give it a positive probability"
        )
    return max(0.0, float((norms[used] ** 2 / q[used]).sum()) - total) / draws


def top_one_residual_variance(grad_map: Numbers, patches: np.ndarray) -> float:
    """Variance for one map of keeping its largest gradient and drawing one of the others.

    The largest |g_p| is kept at its true value; one other position is drawn with
    q_p proportional to |g_p|: sum |g| sum |g| ||x||^2 - ||sum g x||^2 over the others.

    Guarantee: unbiased; an equality.

    Args:
        grad_map: g_p, output gradient of one (sample, filter) map.
        patches: x_p, positions by entries.

    Raises:
        ConfigError: unequal numbers of positions.

    >>> top_one_residual_variance([2.0, 1.0], np.array([[1.0], [1.0]]))
    0.0
    """
    g, x = (
        checked_array("grad_map", grad_map, most=LARGEST),
        checked_array("patches", patches, ndim=2, most=LARGEST),
    )
    if len(g) != len(x):
        raise ConfigError(f"a map of {len(g)} positions needs as many patches, got {len(x)}")
    others = np.arange(len(g)) != np.abs(g).argmax()
    g, x = g[others], x[others]
    if not g.any():
        return 0.0
    return one_term_variance(g[:, None] * x, np.abs(g))


def control_variate_variance(gradient: Numbers, memory: Numbers, probability: float) -> float:
    """Variance of a layer's gradient when it is computed with a probability and else predicted.

    beta m + (b / p)(g - beta m), beta = <g, m> / ||m||^2: (1 / p - 1) ||g - beta m||^2. A memory of
    zeros gives (1 / p - 1) ||g||^2, the variance without prediction.

    Guarantee: unbiased for any beta that does not depend on b; an equality.

    Args:
        gradient: g, flat.
        memory: m, flat, as long: a momentum or an earlier gradient.
        probability: p of computing the layer, 0 < p <= 1.

    Raises:
        ConfigError: unequal lengths or a probability out of range.

    >>> control_variate_variance([1.0, 1.0], [2.0, 0.0], 0.5)
    1.0
    """
    g, m = (
        checked_array("gradient", gradient, most=LARGEST),
        checked_array("memory", memory, most=LARGEST),
    )
    if g.shape != m.shape:
        raise ConfigError(f"a gradient of {len(g)} entries needs as long a memory, got {len(m)}")
    p = checked_number("probability", probability, 0, 1, open_low=True)
    power = float(m @ m)
    rest = g - (float(g @ m) / power) * m if power > 0 else g
    return (1 / p - 1) * float(rest @ rest)
