"""What the methods promise, as numbers: pure functions of numbers and arrays."""

from slimgrad.theory.density import (
    MagnitudeDensity,
    expected_variance,
    truncated_normal_mixture,
)
from slimgrad.theory.entropy import entropy_bits, fixed_width_bits
from slimgrad.theory.huffman import huffman_bits, huffman_lengths
from slimgrad.theory.integer_codes import delta_bits, gamma_bits, omega_bits
from slimgrad.theory.levels import exponential_levels, uniform_levels
from slimgrad.theory.minimax_levels import minimax_levels, optimal_ratio
from slimgrad.theory.optimal_levels import expected_optimal_ratio, optimal_levels
from slimgrad.theory.variance import rounding_resolution_bound, variance_bound
from slimgrad.theory.worst_case import WorstCase, worst_case, worst_case_variance

__all__ = [
    "MagnitudeDensity",
    "WorstCase",
    "delta_bits",
    "entropy_bits",
    "expected_optimal_ratio",
    "expected_variance",
    "exponential_levels",
    "fixed_width_bits",
    "gamma_bits",
    "huffman_bits",
    "huffman_lengths",
    "minimax_levels",
    "omega_bits",
    "optimal_levels",
    "optimal_ratio",
    "rounding_resolution_bound",
    "truncated_normal_mixture",
    "uniform_levels",
    "variance_bound",
    "worst_case",
    "worst_case_variance",
]
