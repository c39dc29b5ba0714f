"""What the methods promise, as numbers: pure functions of numbers and arrays."""

from slimgrad.theory import rates
from slimgrad.theory.budget import (
    LayerRates,
    approximation_pays,
    best_rates,
    noise_share,
    rates_within,
)
from slimgrad.theory.communication import (
    BitsToGap,
    Theorem23,
    bits_to_gap,
    theorem13_ratio,
    theorem23,
)
from slimgrad.theory.density import (
    MagnitudeDensity,
    expected_variance,
    level_probabilities,
    truncated_normal_mixture,
)
from slimgrad.theory.dither import dithered_variance, dithered_variance_bound
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
from slimgrad.theory.lloyd_max import LloydMax, eden_variance, lloyd_max_normal
from slimgrad.theory.low_rank import power_iteration_error_bound, truncation_error
from slimgrad.theory.lower_bound import variance_lower_bound
from slimgrad.theory.minimax_levels import minimax_levels, optimal_ratio
from slimgrad.theory.no_zero import no_zero_expected_variance, no_zero_variance_bound
from slimgrad.theory.normalised_variance import noise_to_signal, normalised_variance_printed
from slimgrad.theory.optimal_levels import expected_optimal_ratio, optimal_levels
from slimgrad.theory.qsgd import qsgd_nonzeros_printed, qsgd_variance_printed
from slimgrad.theory.rotation import rotated_variance_bound
from slimgrad.theory.sampling import (
    control_variate_variance,
    one_term_variance,
    row_sampling_variance,
    row_scores,
    top_one_residual_variance,
)
from slimgrad.theory.scalar_methods import (
    natural_variance_bound,
    sign_contraction,
    terngrad_variance_bound,
)
from slimgrad.theory.sparsifiers import atomo_variance, random_k_variance, top_k_error_bound
from slimgrad.theory.sparsity import expected_nonzeros, expected_nonzeros_bound, lemma17_printed
from slimgrad.theory.theorem4 import (
    Theorem4Counterexample,
    theorem4_counterexample,
    theorem4_printed,
)
from slimgrad.theory.top_one import top_one_bias
from slimgrad.theory.variance import rounding_resolution_bound, variance_bound
from slimgrad.theory.water_filling import water_filling
from slimgrad.theory.worst_case import WorstCase, worst_case, worst_case_variance

__all__ = [
    "BitsToGap",
    "LayerRates",
    "LloydMax",
    "MagnitudeDensity",
    "Theorem4Counterexample",
    "Theorem5Counterexample",
    "Theorem23",
    "WorstCase",
    "approximation_pays",
    "atomo_variance",
    "best_rates",
    "bits_to_gap",
    "control_variate_variance",
    "delta_bits",
    "dithered_variance",
    "dithered_variance_bound",
    "eden_variance",
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
    "level_probabilities",
    "lloyd_max_normal",
    "lp_variance_bound",
    "measured_elias_bits",
    "minimax_levels",
    "natural_variance_bound",
    "no_zero_expected_variance",
    "no_zero_variance_bound",
    "noise_share",
    "noise_to_signal",
    "normalised_variance_printed",
    "omega_bits",
    "one_term_variance",
    "optimal_levels",
    "optimal_ratio",
    "power_iteration_error_bound",
    "qsgd_nonzeros_printed",
    "qsgd_variance_printed",
    "random_k_variance",
    "rates",
    "rates_within",
    "rotated_variance_bound",
    "rounding_resolution_bound",
    "row_sampling_variance",
    "row_scores",
    "sign_contraction",
    "terngrad_variance_bound",
    "theorem4_counterexample",
    "theorem4_printed",
    "theorem5_counterexample",
    "theorem5_printed",
    "theorem13_ratio",
    "theorem23",
    "top_k_error_bound",
    "top_one_bias",
    "top_one_residual_variance",
    "truncated_normal_mixture",
    "truncation_error",
    "uniform_levels",
    "variance_bound",
    "variance_lower_bound",
    "water_filling",
    "worst_case",
    "worst_case_variance",
]
