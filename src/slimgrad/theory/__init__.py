"""What the methods promise, as numbers: pure functions of numbers and arrays."""

from slimgrad.theory.dither import dither_variance_bound
from slimgrad.theory.levels import exponential_levels, uniform_levels
from slimgrad.theory.variance import rounding_resolution_bound, variance_bound

__all__ = [
    "dither_variance_bound",
    "exponential_levels",
    "rounding_resolution_bound",
    "uniform_levels",
    "variance_bound",
]
