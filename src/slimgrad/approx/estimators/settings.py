"""Checks of estimator settings."""

from __future__ import annotations

import math
from collections.abc import Sequence

from slimgrad.core.errors import ConfigError
from slimgrad.core.registry import unknown_name_message


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


def check_share(owner: str, setting: str, value: object) -> None:
    """ConfigError unless ``value`` is a number above 0 and at most 1.

    >>> check_share("RowSampling", "keep", 0.25)
    """
    number = value if isinstance(value, int | float) and not isinstance(value, bool) else math.nan
    if not 0 < number <= 1:
        raise ConfigError(f"{owner}: {setting} must be above 0 and at most 1, got {value!r}")


def check_choice(owner: str, setting: str, value: object, allowed: Sequence[str]) -> None:
    """ConfigError unless ``value`` is one of ``allowed``.

    >>> check_choice("RowSampling", "means", "batch", ("none", "batch", "sample"))
    """
    if value not in allowed:
        raise ConfigError(unknown_name_message(f"{setting} of {owner}", value, allowed))


def check_switch(owner: str, setting: str, value: object) -> None:
    """ConfigError unless ``value`` is True or False.

    >>> check_switch("PatchSampling", "keep_top", True)
    """
    if not isinstance(value, bool):
        raise ConfigError(f"{owner}: {setting} must be True or False, got {value!r}")


def check_number(
    owner: str, setting: str, value: object, least: int, most: float = math.inf
) -> None:
    """ConfigError unless ``value`` is an integer from ``least`` to ``most``.

    >>> check_number("TopK", "k", 4, 1)
    """
    if not isinstance(value, int) or isinstance(value, bool) or not least <= value <= most:
        limit = "" if most == math.inf else f" and at most {most}"
        raise ConfigError(
            f"{owner}: {setting} must be an integer of at least {least}{limit}, got {value!r}"
        )


def count_of_share(share: str, total: int) -> int:
    """``share`` of ``total``, rounded, at least 1.

    The share is given as its text: code compiled by torch takes a text as a constant, where a
    float that only the backward pass reads makes it fail.

    >>> count_of_share("0.2", 12)
    2
    """
    return max(1, round(float(share) * total))
