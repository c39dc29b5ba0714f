"""Ranges of the numbers a calculator is given."""

from __future__ import annotations

from typing import Any

from slimgrad.theory.arguments import MAX_LENGTH, checked_integer, checked_number

# Products of several arguments must stay within float64.
LARGEST = 1e30
MOST = MAX_LENGTH


def positive(name: str, value: Any) -> float:
    """``value`` as a float in [1e-30, 1e30].

    Raises:
        ConfigError: ``value`` is anything else.

    >>> positive("target", 0.5)
    0.5
    """
    return checked_number(name, value, 1e-30, LARGEST)


def non_negative(name: str, value: Any) -> float:
    """``value`` as a float in [0, 1e30].

    Raises:
        ConfigError: ``value`` is anything else.

    >>> non_negative("variance", 0)
    0.0
    """
    return checked_number(name, value, 0.0, LARGEST)


def momentum_factor(value: Any) -> float:
    """A momentum in [0, 1 - 1e-9].

    Raises:
        ConfigError: ``value`` is anything else.

    >>> momentum_factor(0.9)
    0.9
    """
    return checked_number("momentum", value, 0.0, 1 - 1e-9)


def count(name: str, value: Any, least: int = 1) -> int:
    """``value`` as an integer in [least, 10**18].

    Raises:
        ConfigError: ``value`` is anything else.

    >>> count("steps", 10)
    10
    """
    return checked_integer(name, value, least)
