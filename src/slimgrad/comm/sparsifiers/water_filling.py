"""Probabilities proportional to magnitudes, none above one."""

from __future__ import annotations

import numpy as np


def inclusion_probabilities(magnitudes: np.ndarray, expected: float) -> np.ndarray:
    """min(1, c a_i) with c such that they add up to ``expected``; 1 for all a_i > 0 if few enough.

    Of all probabilities with this sum they minimise sum a_i^2 / p_i, the second moment of keeping
    a_i / p_i with probability p_i (Wang et al., 2018, "ATOMO", section 3).

    Args:
        magnitudes: float64 (n,), finite, >= 0.
        expected: >= 0.

    Returns:
        float64 (n,); 0 where the magnitude is 0.

    >>> inclusion_probabilities(np.array([6.0, 1.0, 1.0, 0.0]), 2.0)
    array([1. , 0.5, 0.5, 0. ])
    """
    certain = magnitudes > 0
    if certain.sum() <= expected:
        return certain.astype(np.float64)
    certain = np.zeros_like(certain)
    while True:
        # Each round fixes at least one more probability at one, or is the last.
        rest = magnitudes[~certain].sum()
        if rest == 0:
            return certain.astype(np.float64)
        scale = max(0.0, expected - certain.sum()) / rest
        reached = ~certain & (magnitudes * scale >= 1)
        if not reached.any():
            return np.where(certain, 1.0, magnitudes * scale)
        certain |= reached
