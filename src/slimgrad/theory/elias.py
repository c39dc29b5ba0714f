"""Length of the Elias code of a quantized vector: bounds, expectation, measurement."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from itertools import pairwise

import numpy as np

from slimgrad.core.errors import ConfigError
from slimgrad.theory.arguments import (
    checked_array,
    checked_integer,
    checked_number,
    checked_weights,
)
from slimgrad.theory.integer_codes import omega_bits

NORM_BITS = 32
MOST_INNER_LEVELS = 500
DOUBLINGS = 61


def elias_bits_bound(n: int, s: int, *, nonzeros: float | None = None) -> float:
    """Bound on the expected length of the Elias code of a bucket, every constant explicit.

    The code holds the norm and, for each non-zero component, omega(gap to the one before), a sign
    bit and omega(index of its level). With m = min(n, 2^s sqrt(n)) and H the upper concave hull
    of the points (2^k, |omega(2^k)|) the bound is 32 + m (1 + H(n / m) + |omega(s + 1)|).

    Guarantee: for every vector whose expected number of non-zeros is at most m. The gaps add up to
    at most n, so Jensen's inequality bounds their words; m H(n / m) does not fall with m.

    Args:
        n: length of a bucket in components, >= 1.
        s: levels strictly between 0 and 1, 0 to 500; level indices are 1 to s + 1.
        nonzeros: bound m on the expected number of non-zeros, 0 < m <= n. None: that of levels
            which are powers of 1/2 under the l2 norm.

    Returns:
        Bits for the whole bucket.

    Raises:
        ConfigError: a value out of range.

    >>> round(elias_bits_bound(4096, 2))
    3872

    References:
        Makes Ramezani-Kebrya et al. (2021), Theorem 5, explicit.
    """
    n, s = checked_integer("n", n, 1), checked_integer("s", s, 0, MOST_INNER_LEVELS)
    if nonzeros is None:
        m = min(float(n), 2.0**s * math.sqrt(n))
    else:
        m = checked_number("nonzeros", nonzeros, 0, n, open_low=True)
    return NORM_BITS + m * (1 + gap_bits_hull(n / m) + omega_bits(s + 1))


def gap_bits_hull(gap: float) -> float:
    """The least concave function of a gap that no omega code word exceeds.

    Args:
        gap: 1 to 2**60; need not be an integer.

    Returns:
        Bits.

    Raises:
        ConfigError: a gap out of range.

    >>> [gap_bits_hull(gap) for gap in (1, 2, 3, 16)]
    [1.0, 3.0, 4.5, 11.0]
    """
    gap = checked_number("gap", gap, 1, 2.0**60)
    gaps, bits = zip(*_hull(), strict=True)
    return float(np.interp(gap, gaps, bits))


@cache
def _hull() -> tuple[tuple[float, float], ...]:
    hull: list[tuple[float, float]] = []
    for k in range(DOUBLINGS):
        point = (2.0**k, float(omega_bits(2**k)))
        while len(hull) > 1 and _rise(hull[-2], hull[-1]) <= _rise(hull[-1], point):
            hull.pop()
        hull.append(point)
    return tuple(hull)


def _rise(left: tuple[float, float], right: tuple[float, float]) -> float:
    return (right[1] - left[1]) / (right[0] - left[0])


def expected_elias_bits(probabilities: Sequence[float] | np.ndarray) -> float:
    """Expected Elias bits of a component when components are independent, without the norm.

    With q the probability of a zero the gap g has probability q^(g-1) (1 - q), so a non-zero
    component costs 1 + sum_g q^(g-1) (1 - q) |omega(g)| + |omega(index)|. Exact for long vectors.

    Args:
        probabilities: of level indices 0 (zero), 1, 2, ...; or counts; divided by their sum.

    Returns:
        Bits per component.

    Raises:
        ConfigError: probabilities that are none.

    >>> expected_elias_bits([0, 1])
    3.0
    """
    weights = checked_weights("probabilities", probabilities)
    p = weights / weights.sum()
    zero, nonzero = float(p[0]), float(p[1:].sum())
    if nonzero == 0:
        return 0.0
    index_bits = sum(float(share) * omega_bits(j) for j, share in enumerate(p[1:].tolist(), 1))
    return nonzero * (1 + _mean_gap_bits(zero)) + index_bits


def _mean_gap_bits(zero: float) -> float:
    """Mean word of a geometric gap: the word length changes only at powers of two."""
    starts = [zero ** (2.0**k - 1) for k in range(DOUBLINGS)]
    return sum(
        (here - beyond) * omega_bits(2**k) for k, (here, beyond) in enumerate(pairwise(starts))
    )


def measured_elias_bits(indices: Sequence[int] | np.ndarray) -> int:
    """Length of the Elias code of one bucket, norm included.

    Args:
        indices: signed level indices: 0 for zero, +-1 for the smallest level, and so on.

    Returns:
        Bits: 32 for the norm, and omega(gap), a sign and omega(index) for each non-zero entry.
        What tells the receiver where the bucket ends is not counted.

    Raises:
        ConfigError: entries that are not integers.

    >>> measured_elias_bits([0, 3, 0, 1])
    44
    """
    entries = checked_array("indices", indices)
    if not (entries == np.rint(entries)).all():
        raise ConfigError("indices must be integers, one signed level index a component")
    places = np.flatnonzero(entries)
    gaps = np.diff(places, prepend=-1)
    words = [*_lengths(gaps), *_lengths(np.abs(entries[places]))]
    return NORM_BITS + len(places) + sum(words)


def _lengths(values: np.ndarray) -> list[int]:
    distinct, counts = np.unique(values, return_counts=True)
    pairs = zip(distinct.tolist(), counts.tolist(), strict=True)
    return [count * omega_bits(int(value)) for value, count in pairs]


def theorem5_printed(n: int, s: int) -> float:
    """Theorem 5 with its o(1) terms left out. Not a bound: see ``theorem5_counterexample``.

    With m = 2^(2s) + 2^s sqrt(n): 32 + 3 m + m log2(n / m) + m log2 log2(8 (2^(2s) + n) / m).
    ``elias_bits_bound`` holds everywhere.

    Args:
        n: length of the vector, >= 1; the theorem needs m <= n / e.
        s: levels strictly between 0 and 1, powers of 1/2; 0 to 500.

    Returns:
        Bits.

    Raises:
        ConfigError: a value out of range, or a vector too short for the theorem.

    >>> round(theorem5_printed(65536, 2))
    12662

    References:
        Ramezani-Kebrya et al. (2021), Theorem 5.
    """
    n, s = checked_integer("n", n, 1), checked_integer("s", s, 0, MOST_INNER_LEVELS)
    m = 2.0 ** (2 * s) + 2.0**s * math.sqrt(n)
    if m > n / math.e:
        raise ConfigError(
            f"Theorem 5 needs 2^(2s) + 2^s sqrt(n) <= n / e, got {m:.6g} > {n / math.e:.6g} "
            f"for n={n} and s={s}; use elias_bits_bound"
        )
    inner = math.log2(8 * (2.0 ** (2 * s) + n) / m)
    return NORM_BITS + m * (3 + math.log2(n / m) + math.log2(inner))


@dataclass(frozen=True)
class Theorem5Counterexample:
    """Equal components whose code is longer than the printed expression.

    Attributes:
        n: length of the vector.
        s: levels strictly between 0 and 1.
        expected_bits: exact expected length of the code of equal components.
        printed_bits: ``theorem5_printed(n, s)``.
        bits_bound: ``elias_bits_bound(n, s)``, at least ``expected_bits``.
    """

    n: int
    s: int
    expected_bits: float
    printed_bits: float
    bits_bound: float


def theorem5_counterexample(n: int = 65536, s: int = 2) -> Theorem5Counterexample:
    """The expected code length of n equal components beside the printed expression.

    Each component is non-zero with probability p = 2^s / sqrt(n), and then has index 1. The gap g
    occurs p q^(g-1) (1 + (n - g) p) times on average, q = 1 - p, for g = 1 to n.

    Args:
        n: length of the vector, 4^s to 10^12.
        s: levels strictly between 0 and 1, powers of 1/2.

    Raises:
        ConfigError: a value out of range, or a vector too short for the theorem.

    >>> example = theorem5_counterexample()
    >>> round(example.expected_bits), round(example.printed_bits)
    (13383, 12662)
    """
    s = checked_integer("s", s, 0, MOST_INNER_LEVELS)
    n = checked_integer("n", n, 1, 10**12)
    printed = theorem5_printed(n, s)
    p = 2.0**s / math.sqrt(n)
    # Words of gaps beyond 80 mean gaps have a probability below 1e-34.
    gaps = np.arange(1, min(n, math.ceil(80 / p)) + 1, dtype=np.float64)
    often = p * (1 - p) ** (gaps - 1) * (1 + (n - gaps) * p)
    doublings = np.floor(np.log2(gaps)).astype(np.int64)
    words = np.asarray([omega_bits(2**k) for k in range(int(doublings.max()) + 1)])
    expected = NORM_BITS + 2 * n * p + float((often * words[doublings]).sum())
    return Theorem5Counterexample(n, s, expected, printed, elias_bits_bound(n, s))
