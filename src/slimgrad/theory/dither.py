"""Uniform rounding with a dither that the receiver subtracts."""

from __future__ import annotations

from slimgrad.theory.arguments import checked_integer, checked_number


def dithered_variance(step_rms: float) -> float:
    """Relative variance c^2 / 12 of dithered rounding with a step of c times the bucket's rms.

    The error is uniform on (-step / 2, step / 2) whatever the component, so n components have
    n step^2 / 12 = c^2 ||v||^2 / 12.

    Guarantee: an equality for every vector, as long as no component is clipped and the step is
    not widened.

    Args:
        step_rms: c, step in units of the root mean square of the bucket, > 0.

    Raises:
        ConfigError: ``step_rms`` out of range.

    >>> round(dithered_variance(1.0), 5)
    0.08333

    References:
        Schuchman (1964); Lipshitz, Wannamaker, Vanderkooy (1992).
    """
    c = checked_number("step_rms", step_rms, 0, 1e100, open_low=True)
    return c * c / 12


def dithered_variance_bound(step_rms: float, n: int, largest_index: int) -> float:
    """Bound on the relative variance with the step max(c rms, max / m) that never clips.

    max(c^2, n / m^2) / 12: a component holds at most the whole squared norm, so its step is at
    most ||v|| / m.

    Guarantee: for every vector of n components; attained by a single non-zero component.
    ``dithered_variance(step_rms)`` is exact where the largest component is at most c m times the
    root mean square.

    Args:
        step_rms: c, step in units of the root mean square of the bucket, > 0.
        n: length of a bucket in components, >= 1.
        largest_index: m, the largest magnitude in steps that a symbol can hold, >= 1.

    Raises:
        ConfigError: a value out of range.

    >>> round(dithered_variance_bound(1.0, 512, 7), 4)
    0.8707
    """
    n, m = checked_integer("n", n, 1), checked_integer("largest_index", largest_index, 1)
    return max(dithered_variance(step_rms), n / m / m / 12)
