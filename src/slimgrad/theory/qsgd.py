"""The bounds of QSGD as printed: valid, and looser than ``variance_bound``."""

from __future__ import annotations

import math

from slimgrad.theory.arguments import checked_integer

MOST_STEPS = 2**31


def qsgd_variance_printed(s: int, n: int) -> float:
    """Relative variance min(n / s^2, sqrt(n) / s) of s equal steps under the l2 norm.

    Guarantee: a bound. ``variance_bound(uniform_levels(s), n)`` is never larger: it has n / (4 s^2)
    in place of the first term, and sqrt(n) / s - 1 for long vectors.

    Args:
        s: steps from 0 to 1, >= 1.
        n: length of a bucket in components, >= 1.

    Raises:
        ConfigError: ``s`` or ``n`` out of range.

    >>> qsgd_variance_printed(4, 64)
    2.0

    References:
        Alistarh, Grubic, Li, Tomioka, Vojnovic (2017), Lemma 3.1.
    """
    s, n = checked_integer("s", s, 1, MOST_STEPS), checked_integer("n", n, 1)
    return min(n / s**2, math.sqrt(n) / s)


def qsgd_nonzeros_printed(s: int, n: int) -> float:
    """Expected number of non-zeros s (s + sqrt(n)) of s equal steps under the l2 norm.

    Guarantee: a bound. ``expected_nonzeros_bound(uniform_levels(s), n)`` has s sqrt(n).

    Args:
        s: steps from 0 to 1, >= 1.
        n: length of a bucket in components, >= 1.

    Raises:
        ConfigError: ``s`` or ``n`` out of range.

    >>> qsgd_nonzeros_printed(4, 64)
    48.0

    References:
        Alistarh, Grubic, Li, Tomioka, Vojnovic (2017), Lemma 3.1.
    """
    s, n = checked_integer("s", s, 1, MOST_STEPS), checked_integer("n", n, 1)
    return s * (s + math.sqrt(n))
