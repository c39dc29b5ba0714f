"""The least value of a function of one number, by a scan and a golden section."""

from __future__ import annotations

import math
from collections.abc import Callable

SCAN_POINTS = 129
GOLDEN_STEPS = 60
GOLDEN = (math.sqrt(5) - 1) / 2


def least_point(function: Callable[[float], float], low: float, high: float) -> float:
    """Where ``function`` is least in [low, high]: the best of a scan, refined between neighbours.

    The function may have several minima as long as the scan separates them.

    >>> round(least_point(lambda x: (x - 0.3) ** 2, 0.0, 1.0), 6)
    0.3
    """
    points = [low + (high - low) * k / (SCAN_POINTS - 1) for k in range(SCAN_POINTS)]
    values = [function(x) for x in points]
    best = min(range(SCAN_POINTS), key=values.__getitem__)
    left, right = points[max(0, best - 1)], points[min(SCAN_POINTS - 1, best + 1)]
    found = (values[best], points[best])
    for _ in range(GOLDEN_STEPS):
        inner = (right - GOLDEN * (right - left), left + GOLDEN * (right - left))
        at = (function(inner[0]), function(inner[1]))
        found = min(found, (at[0], inner[0]), (at[1], inner[1]))
        left, right = (left, inner[1]) if at[0] <= at[1] else (inner[0], right)
    return found[1]
