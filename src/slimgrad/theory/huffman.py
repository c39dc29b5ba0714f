"""Prefix codes of least mean length, with or without a limit on the longest word."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from slimgrad.core.errors import ConfigError
from slimgrad.theory.arguments import checked_integer, checked_weights

GOLDEN_RATIO = (1 + math.sqrt(5)) / 2


def huffman_lengths(
    probabilities: Sequence[float] | np.ndarray, limit_bits: int | None = None
) -> tuple[int, ...]:
    """Word lengths of the best prefix code whose words have at most ``limit_bits`` bits.

    Minimises sum_i p_i length_i subject to sum_i 2**-length_i <= 1 and length_i <= limit_bits, by
    the package-merge algorithm. The lengths fill the code (Kraft's sum is 1) from two symbols on.

    Args:
        probabilities: probabilities or counts, >= 0; only their ratios matter.
        limit_bits: longest word allowed, 1 to 64; None for no limit (Huffman's code).

    Returns:
        One length for each symbol; 0 for a symbol of probability 0, which gets no word. A symbol
        that is alone gets a word of 1 bit.

    Raises:
        ConfigError: probabilities that are none, or more symbols than words of ``limit_bits`` bits.

    >>> huffman_lengths([8, 4, 2, 1, 1])
    (1, 2, 3, 4, 4)
    >>> huffman_lengths([8, 4, 2, 1, 1], limit_bits=3)
    (1, 3, 3, 3, 3)
    >>> huffman_lengths([0.9, 0, 0.1])
    (1, 0, 1)

    References:
        Larmore, Hirschberg (1990), "A fast algorithm for optimal length-limited Huffman codes".
    """
    weights = checked_weights("probabilities", probabilities)
    used = np.flatnonzero(weights)
    ranked = used[np.argsort(weights[used], kind="stable")]
    leaves = weights[ranked]
    if limit_bits is None:
        rounds = _longest_huffman_word(leaves)
    else:
        rounds = checked_integer("limit_bits", limit_bits, 1, 64)
        if len(leaves) > 2**rounds:
            raise ConfigError(
                f"{len(leaves)} symbols do not fit words of limit_bits={rounds}; "
                f"take limit_bits >= {(len(leaves) - 1).bit_length()}"
            )
    lengths = np.zeros(len(weights), dtype=np.int64)
    if len(leaves) == 1:
        lengths[ranked] = 1
    for kept in _leaves_kept(leaves, rounds):
        lengths[ranked[:kept]] += 1
    return tuple(int(length) for length in lengths)


def huffman_bits(
    probabilities: Sequence[float] | np.ndarray, limit_bits: int | None = None
) -> float:
    """Mean length sum_i p_i length_i of the best prefix code.

    Guarantee: at least the entropy; below entropy + 1 without a limit. What the receiver needs to
    know the lengths is not counted.

    Args:
        probabilities: probabilities or counts, >= 0; they are divided by their sum.
        limit_bits: longest word allowed, 1 to 64; None for no limit.

    Returns:
        Bits per symbol.

    Raises:
        ConfigError: as ``huffman_lengths``.

    >>> huffman_bits([8, 4, 2, 1, 1])
    1.875

    References:
        Huffman (1952); Larmore, Hirschberg (1990).
    """
    weights = checked_weights("probabilities", probabilities)
    lengths = np.asarray(huffman_lengths(weights, limit_bits))
    return float((weights * lengths).sum() / weights.sum())


def _longest_huffman_word(leaves: np.ndarray) -> int:
    """A length that no word exceeds: probability halves at least each 1.44 bits of depth."""
    rarest = max(float(leaves[0] / leaves.sum()), math.ulp(0.0))
    return max(1, min(len(leaves) - 1, math.ceil(-math.log(rarest, GOLDEN_RATIO)) + 2))


def _leaves_kept(leaves: np.ndarray, rounds: int) -> list[int]:
    """How many of the lightest leaves the best code takes in each round of package-merge."""
    n = len(leaves)
    is_leaf, items = [np.ones(n, dtype=bool)], leaves
    for _ in range(rounds - 1):
        even = len(items) // 2 * 2
        packages = items[0:even:2] + items[1:even:2]
        together = np.concatenate([leaves, packages])
        order = np.argsort(together, kind="stable")
        items = together[order]
        is_leaf.append(order < n)
    taken, kept = 2 * n - 2, []
    for flags in reversed(is_leaf):
        kept.append(int(flags[:taken].sum()))
        taken = 2 * (taken - kept[-1])
    return kept
