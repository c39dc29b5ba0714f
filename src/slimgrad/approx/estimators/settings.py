"""Checks of estimator settings."""

from __future__ import annotations

import math

from slimgrad.core.errors import ConfigError


def check_scale(owner: str, scale: object) -> None:
    """ConfigError unless ``scale`` is a finite number above zero.

    >>> check_scale("TopOne", 0.5)
    """
    number = scale if isinstance(scale, int | float) and not isinstance(scale, bool) else math.nan
    if not math.isfinite(number) or number <= 0:
        raise ConfigError(
            f"{owner}: scale must be a finite number above 0, got {scale!r}; "
            "use Zero() for a gradient of zero"
        )
