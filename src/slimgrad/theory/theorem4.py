"""The printed variance bound of NUQSGD, and the vector that exceeds it."""

from __future__ import annotations

import math
from dataclasses import dataclass

from slimgrad.theory.arguments import checked_integer

MOST_INNER_LEVELS = 500
MOST_COUNTEREXAMPLE_LEVELS = 29


def theorem4_printed(s: int, d: int) -> float:
    """Theorem 4 as printed. Not a bound: see ``theorem4_counterexample``.

    1/8 + 2^(-2s-2) d for d < 2^(2s+1), and 2^-s sqrt(d) - 7/8 from there on. The two pieces meet
    at d = 2^(2s+2), not where the text changes over. For s >= 2 vectors of 2^(2s+1) and somewhat
    more components have a larger variance; the second piece holds from d = 2.25 * 4^s on.
    ``variance_bound`` holds everywhere.

    Args:
        s: levels strictly between 0 and 1, powers of 1/2; 0 to 500.
        d: length of the vector, >= 1; normalised by its l2 norm.

    Returns:
        The printed value.

    Raises:
        ConfigError: ``s`` or ``d`` out of range.

    >>> theorem4_printed(2, 16), round(theorem4_printed(2, 32), 6)
    (0.375, 0.539214)

    References:
        Ramezani-Kebrya et al. (2021), Theorem 4.
    """
    s = checked_integer("s", s, 0, MOST_INNER_LEVELS)
    d = checked_integer("d", d, 1)
    if d < 2 ** (2 * s + 1):
        return 1 / 8 + d * 2.0 ** (-2 * s - 2)
    return 2.0**-s * math.sqrt(d) - 7 / 8


@dataclass(frozen=True)
class Theorem4Counterexample:
    """A unit vector whose variance exceeds the printed bound.

    Attributes:
        s: levels strictly between 0 and 1.
        d: length, 2^(2s+1).
        small: magnitude of d - 1 components.
        large: magnitude of one component.
        variance: E||Q(v) - v||^2 of that vector.
        printed: ``theorem4_printed(s, d)``, smaller than ``variance``.
    """

    s: int
    d: int
    small: float
    large: float
    variance: float
    printed: float


def theorem4_counterexample(s: int) -> Theorem4Counterexample:
    """A vector of 2^(2s+1) components that Theorem 4 as printed does not cover.

    d - 1 components 2^(-s-1), in the middle of the first bin, and one r with
    r^2 = 1/2 + 1/(2d). The variance is 3r/2 - 1/2 - 1/d.

    Args:
        s: levels strictly between 0 and 1, 2 to 29. For s = 1 the printed bound holds at d = 8.

    Raises:
        ConfigError: ``s`` out of range.

    >>> example = theorem4_counterexample(2)
    >>> example.d, round(example.variance, 4), round(example.printed, 4)
    (32, 0.5459, 0.5392)
    """
    s = checked_integer("s", s, 2, MOST_COUNTEREXAMPLE_LEVELS)
    d = 2 ** (2 * s + 1)
    large = math.sqrt(1 / 2 + 1 / (2 * d))
    variance = 1.5 * large - 1 / 2 - 1 / d
    return Theorem4Counterexample(s, d, 2.0 ** (-s - 1), large, variance, theorem4_printed(s, d))
