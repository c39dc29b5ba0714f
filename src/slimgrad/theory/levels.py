"""Grids of magnitudes that quantizers round to."""

from __future__ import annotations

from slimgrad.core.errors import ConfigError
from slimgrad.theory.arguments import checked_integer, checked_number

MOST_LEVELS = 2**16


def exponential_levels(s: int, ratio: float = 0.5) -> tuple[float, ...]:
    """The s + 2 levels (0, ratio**s, ..., ratio, 1) that are dense near zero.

    Args:
        s: number of levels strictly between 0 and 1, 0 to 65536.
        ratio: quotient of two neighbouring levels, 0 < ratio < 1.

    Returns:
        Ascending levels, 0 and 1 included.

    Raises:
        ConfigError: ``s`` or ``ratio`` out of range, or levels too small for a float64.

    >>> exponential_levels(2)
    (0.0, 0.25, 0.5, 1.0)

    References:
        Ramezani-Kebrya, Faghri, Markov, Aksenov, Alistarh, Roy (2021), Definition 3.
    """
    s = checked_integer("s", s, 0, MOST_LEVELS)
    ratio = checked_number("ratio", ratio, 0, 1, open_low=True, open_high=True)
    if ratio**s == 0.0:
        raise ConfigError(f"ratio={ratio!r} to the power s={s} is zero; take fewer levels")
    return (0.0, *(ratio**j for j in range(s, -1, -1)))


def uniform_levels(s: int) -> tuple[float, ...]:
    """The s + 1 levels (0, 1/s, 2/s, ..., 1), equally spaced.

    Args:
        s: number of steps from 0 to 1, 1 to 65536.

    Returns:
        Ascending levels, 0 and 1 included.

    Raises:
        ConfigError: ``s`` is not an integer in the range.

    >>> uniform_levels(4)
    (0.0, 0.25, 0.5, 0.75, 1.0)

    References:
        Alistarh, Grubic, Li, Tomioka, Vojnovic (2017), section 3.1.
    """
    s = checked_integer("s", s, 1, MOST_LEVELS)
    return tuple(j / s for j in range(s + 1))
