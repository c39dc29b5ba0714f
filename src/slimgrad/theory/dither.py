"""Variance of subtractive dither."""

from __future__ import annotations

from slimgrad.core.errors import ConfigError


def dither_variance_bound(step_rms: float, magnitudes: int, n: int) -> float:
    """Bound on the relative variance of n components rounded with subtractive dither.

    With step = max(step_rms * rms, max|v| / m) every error is uniform in (-step / 2, step / 2),
    whatever v: E||Q(v) - v||^2 = n step^2 / 12, which is

    * step_rms^2 / 12 of ||v||^2 exactly, while max|v| <= m step_rms rms;
    * n max|v|^2 / (12 m^2), else. As max|v| <= ||v||, it is at most n / (12 m^2) of ||v||^2.

    Guarantee: E||Q(v) - v||^2 <= max(step_rms^2, n / m^2) / 12 ||v||^2 for every v; attained by a
    vector with one component that is not 0 if n >= (m step_rms)^2, else by every vector.

    Args:
        step_rms: least step over the root mean square; finite, above 0.
        magnitudes: largest integer m of a symbol, >= 1.
        n: length of a bucket in components, >= 0.

    Returns:
        The bound, relative to the squared Euclidean norm of the vector.

    Raises:
        ConfigError: a value out of range.

    >>> dither_variance_bound(1.0, 7, 40) == 1 / 12
    True
    >>> round(dither_variance_bound(1.0, 7, 512), 3)
    0.871

    References:
        Schuchman (1964), "Dither signals and their effect on quantization noise".
    """
    if not 0 < step_rms < float("inf"):
        raise ConfigError(f"step_rms must be finite and above 0, got {step_rms!r}")
    if not isinstance(magnitudes, int) or magnitudes < 1:
        raise ConfigError(f"magnitudes must be an integer >= 1, got {magnitudes!r}")
    if not isinstance(n, int) or n < 0:
        raise ConfigError(f"n must be an integer >= 0, got n={n!r}")
    return max(step_rms**2, n / magnitudes**2) / 12 if n > 0 else 0.0
