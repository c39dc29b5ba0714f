"""What a memoryless source of symbols needs at least."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from slimgrad.theory.arguments import checked_integer, checked_weights


def entropy_bits(probabilities: Sequence[float] | np.ndarray) -> float:
    """Shannon entropy H = -sum_i p_i log2 p_i of a symbol.

    Guarantee: no lossless code of independent symbols has a smaller mean length (Shannon 1948).

    Args:
        probabilities: probabilities or counts, >= 0; they are divided by their sum.

    Returns:
        Bits per symbol.

    Raises:
        ConfigError: no entry, a negative or non-finite one, or all zero.

    >>> entropy_bits([0.5, 0.25, 0.25, 0])
    1.5
    >>> entropy_bits([7, 7])
    1.0

    References:
        Shannon (1948), section 6.
    """
    weights = checked_weights("probabilities", probabilities)
    p = weights[weights > 0] / weights.sum()
    return float(abs((p * np.log2(p)).sum()))


def fixed_width_bits(symbols: int) -> int:
    """Bits of a symbol of fixed width that tells ``symbols`` values apart: ceil(log2 symbols).

    Raises:
        ConfigError: ``symbols`` is not an integer >= 1.

    >>> [fixed_width_bits(k) for k in (1, 2, 15, 16, 17)]
    [0, 1, 4, 4, 5]
    """
    return (checked_integer("symbols", symbols, 1) - 1).bit_length()
