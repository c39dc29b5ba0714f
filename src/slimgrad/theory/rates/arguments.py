"""Checks of the numbers a calculator is given."""

from __future__ import annotations

import math
from numbers import Real

from slimgrad.core.errors import ConfigError

# Products of several arguments must stay within float64.
LARGEST = 1e30
MOST = 10**18


def positive(name: str, value: object) -> float:
    """``value`` as a float in [1e-30, 1e30].

    Raises:
        ConfigError: ``value`` is anything else.

    >>> positive("target", 0.5)
    0.5
    """
    number = _real(value)
    if not 1 / LARGEST <= number <= LARGEST:
        raise ConfigError(f"{name} must be a number from 1e-30 to 1e30, got {name}={value!r}")
    return number


def non_negative(name: str, value: object) -> float:
    """``value`` as a float in [0, 1e30].

    Raises:
        ConfigError: ``value`` is anything else.

    >>> non_negative("variance", 0)
    0.0
    """
    number = _real(value)
    if not 0 <= number <= LARGEST:
        raise ConfigError(f"{name} must be a number from 0 to 1e30, got {name}={value!r}")
    return number


def momentum_factor(value: object) -> float:
    """A momentum in [0, 1 - 1e-9].

    Raises:
        ConfigError: ``value`` is anything else.

    >>> momentum_factor(0.9)
    0.9
    """
    number = _real(value)
    if not 0 <= number <= 1 - 1e-9:
        raise ConfigError(f"momentum must be at least 0 and below 1, got momentum={value!r}")
    return number


def count(name: str, value: object, least: int = 1) -> int:
    """``value`` as an integer in [least, 10**18].

    Raises:
        ConfigError: ``value`` is anything else.

    >>> count("steps", 10)
    10
    """
    if not isinstance(value, int) or isinstance(value, bool) or not least <= value <= MOST:
        raise ConfigError(f"{name} must be an integer from {least} to 10**18, got {name}={value!r}")
    return value


def _real(value: object) -> float:
    """``value`` as a float; NaN for what is no real number or too large for one."""
    if not isinstance(value, Real) or isinstance(value, bool):
        return math.nan
    try:
        return float(value)
    except OverflowError:
        return math.nan
