"""What the methods promise, as numbers: pure functions of numbers and arrays."""

from slimgrad.theory.communication import (
    BitsToGap,
    Theorem23,
    bits_to_gap,
    theorem13_ratio,
    theorem23,
)
from slimgrad.theory.density import MagnitudeDensity, expected_variance, truncated_normal_mixture
from slimgrad.theory.dither import dither_variance_bound
from slimgrad.theory.elias import (
    Theorem5Counterexample,
    elias_bits_bound,
    expected_elias_bits,
    measured_elias_bits,
    theorem5_counterexample,
    theorem5_printed,
)
from slimgrad.theory.entropy import entropy_bits, fixed_width_bits
from slimgrad.theory.huffman import huffman_bits, huffman_lengths
from slimgrad.theory.integer_codes import delta_bits, gamma_bits, omega_bits
from slimgrad.theory.levels import exponential_levels, uniform_levels
from slimgrad.theory.linear_program import lp_variance_bound
from slimgrad.theory.lloyd_max import normal_distortion, normal_levels
from slimgrad.theory.lower_bound import variance_lower_bound
from slimgrad.theory.minimax_levels import minimax_levels, optimal_ratio
from slimgrad.theory.no_zero import no_zero_variance_bound
from slimgrad.theory.optimal_levels import expected_optimal_ratio, optimal_levels
from slimgrad.theory.rotation import rotated_variance_bound
from slimgrad.theory.sparsity import expected_nonzeros, expected_nonzeros_bound, lemma17_printed
from slimgrad.theory.theorem4 import (
    Theorem4Counterexample,
    theorem4_counterexample,
    theorem4_printed,
)
from slimgrad.theory.variance import rounding_resolution_bound, variance_bound
from slimgrad.theory.worst_case import WorstCase, worst_case, worst_case_variance

__all__ = [
    "BitsToGap",
    "MagnitudeDensity",
    "Theorem4Counterexample",
    "Theorem5Counterexample",
    "Theorem23",
    "WorstCase",
    "bits_to_gap",
    "delta_bits",
    "dither_variance_bound",
    "elias_bits_bound",
    "entropy_bits",
    "expected_elias_bits",
    "expected_nonzeros",
    "expected_nonzeros_bound",
    "expected_optimal_ratio",
    "expected_variance",
    "exponential_levels",
    "fixed_width_bits",
    "gamma_bits",
    "huffman_bits",
    "huffman_lengths",
    "lemma17_printed",
    "lp_variance_bound",
    "measured_elias_bits",
    "minimax_levels",
    "no_zero_variance_bound",
    "normal_distortion",
    "normal_levels",
    "omega_bits",
    "optimal_levels",
    "optimal_ratio",
    "rotated_variance_bound",
    "rounding_resolution_bound",
    "theorem4_counterexample",
    "theorem4_printed",
    "theorem5_counterexample",
    "theorem5_printed",
    "theorem13_ratio",
    "theorem23",
    "truncated_normal_mixture",
    "uniform_levels",
    "variance_bound",
    "variance_lower_bound",
    "worst_case",
    "worst_case_variance",
]
