"""Checks of arguments that the theory functions share: one line that says what is allowed."""

from __future__ import annotations

import math
from collections.abc import Sequence
from itertools import pairwise
from numbers import Integral, Real
from typing import Any

import numpy as np

from slimgrad.core.errors import ConfigError
from slimgrad.core.registry import unknown_name_message

NORMS = ("l2", "linf")
MAX_LENGTH = 10**18


def checked_integer(name: str, value: Any, low: int = 0, high: int = MAX_LENGTH) -> int:
    """``value`` as an int when it is an integer from ``low`` to ``high``.

    >>> checked_integer("s", 3, 1, 8)
    3
    >>> checked_integer("s", 0, 1, 8)
    Traceback (most recent call last):
    slimgrad.core.errors.ConfigError: s must be an integer from 1 to 8, got s=0
    """
    number = int(value) if isinstance(value, Integral) and not isinstance(value, bool) else low - 1
    if not low <= number <= high:
        allowed = f">= {low}" if high == MAX_LENGTH else f"from {low} to {high}"
        allowed += f" and <= {high:.0e}" if number > high == MAX_LENGTH else ""
        raise ConfigError(f"{name} must be an integer {allowed}, got {name}={value!r}")
    return number


def checked_number(
    name: str,
    value: Any,
    low: float = -math.inf,
    high: float = math.inf,
    *,
    open_low: bool = False,
    open_high: bool = False,
) -> float:
    """``value`` as a float when it is a finite real number in the interval.

    >>> checked_number("ratio", 0.5, 0, 1, open_low=True)
    0.5
    >>> checked_number("ratio", 0, 0, 1, open_low=True)
    Traceback (most recent call last):
    slimgrad.core.errors.ConfigError: ratio must be a number with 0 < ratio <= 1, got ratio=0
    """
    number = float(value) if isinstance(value, Real) and not isinstance(value, bool) else math.nan
    above = low < number if open_low else low <= number
    below = number < high if open_high else number <= high
    if not (math.isfinite(number) and above and below):
        left = f"{low} {'<' if open_low else '<='} " if low > -math.inf else ""
        right = f" {'<' if open_high else '<='} {high}" if high < math.inf else ""
        allowed = f"number with {left}{name}{right}" if left or right else "finite number"
        raise ConfigError(f"{name} must be a {allowed}, got {name}={value!r}")
    return number


def checked_grid(levels: Sequence[float] | np.ndarray) -> tuple[float, ...]:
    """The levels as floats when they ascend strictly from 0 to 1.

    >>> checked_grid([0, 0.5, 1])
    (0.0, 0.5, 1.0)
    """
    try:
        grid = tuple(float(level) for level in levels)
    except (TypeError, ValueError):
        raise ConfigError(f"levels must ascend strictly from 0 to 1, got {levels!r}") from None
    ascending = all(low < high for low, high in pairwise(grid))
    if len(grid) < 2 or grid[0] != 0.0 or grid[-1] != 1.0 or not ascending:
        raise ConfigError(f"levels must ascend strictly from 0 to 1, got {grid!r}")
    return grid


def checked_norm(norm: str) -> str:
    """``norm`` when it is "l2" or "linf".

    >>> checked_norm("linf")
    'linf'
    """
    if norm not in NORMS:
        raise ConfigError(unknown_name_message("norm", norm, NORMS))
    return norm


def checked_array(name: str, values: Any, *, ndim: int = 1) -> np.ndarray:
    """``values`` as a float64 array of ``ndim`` dimensions, not empty, all finite.

    >>> checked_array("v", [1, 2])
    array([1., 2.])
    """
    try:
        array = np.asarray(values, dtype=np.float64)
    except (TypeError, ValueError):
        raise ConfigError(f"{name} must be an array of numbers, got {values!r:.80}") from None
    if array.ndim != ndim or array.size == 0:
        raise ConfigError(
            f"{name} must have {ndim} dimension(s) and at least one entry, "
            f"got shape {tuple(array.shape)}"
        )
    if not np.isfinite(array).all():
        raise ConfigError(f"{name} must be finite, got {array[~np.isfinite(array)][0]}")
    return array


def checked_weights(name: str, values: Any) -> np.ndarray:
    """``values`` as a float64 vector of non-negative weights with a positive sum.

    >>> checked_weights("probabilities", [1, 3])
    array([1., 3.])
    """
    weights = checked_array(name, values)
    with np.errstate(over="ignore"):
        total = weights.sum()
    if weights.min() < 0 or not 0 < total < math.inf:
        raise ConfigError(
            f"{name} must be >= 0 with a positive, finite sum, got a smallest entry of "
            f"{weights.min()} and a sum of {total}"
        )
    return weights
