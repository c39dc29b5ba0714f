"""Searches that several calculators need: the fewest steps, the best step size."""

from __future__ import annotations

import math
from collections.abc import Callable

from slimgrad.theory.rates.arguments import MOST

TOO_MANY = "the bound does not come down to the target within 10**18 steps"


def fewest_steps(bound: Callable[[int], float], target: float) -> int | None:
    """The fewest steps at which ``bound`` is at most ``target``; None if 10**18 do not suffice.

    Args:
        bound: falls when the number of steps grows. Where it does not, the result still reaches
            the target, but need not be the fewest.
        target: what to reach.

    >>> fewest_steps(lambda steps: 1 / steps, 0.01)
    100
    """
    high = 1
    while not bound(high) <= target:
        if high == MOST:
            return None
        high = min(2 * high, MOST)
    low = high // 2
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (low, middle) if bound(middle) <= target else (middle, high)
    return high


def balanced_step(decay: float, growth: float, largest: float) -> float:
    """The step a in (0, largest] for which decay / a + growth a is least.

    >>> balanced_step(4.0, 1.0, largest=10.0), balanced_step(4.0, 0.0, largest=10.0)
    (2.0, 10.0)
    """
    return largest if growth == 0 else min(largest, math.sqrt(decay / growth))


def searched_step(bound: Callable[[float], float], largest: float) -> float:
    """The step in [1e-30 largest, largest] for which ``bound`` is least.

    Args:
        bound: falls, then grows; it may be infinite at the upper end.
        largest: upper end.

    >>> round(searched_step(lambda a: 4 / a + a, largest=100.0), 6)
    2.0
    """
    low, high = math.log(largest) - 30 * math.log(10), math.log(largest)
    for _ in range(120):
        third = (high - low) / 3
        left, right = low + third, high - third
        if bound(math.exp(left)) <= bound(math.exp(right)):
            high = right
        else:
            low = left
    return min(largest, math.exp((low + high) / 2))
