import math

import pytest

from slimgrad.core.errors import ConfigError
from slimgrad.theory import (
    bits_to_gap,
    elias_bits_bound,
    exponential_levels,
    theorem13_ratio,
    theorem23,
    uniform_levels,
    variance_bound,
)

PROBLEM = {"radius": 1.0, "second_moment": 1.0, "smoothness": 1.0}


def test_ratio_of_the_printed_expressions_tends_to_one():
    assert theorem13_ratio(3, 10**6) == pytest.approx(0.70, abs=5e-3)
    assert theorem13_ratio(3, 10**8) == pytest.approx(0.77, abs=5e-3)
    assert theorem13_ratio(3, 10**12) == pytest.approx(0.85, abs=5e-3)
    assert theorem13_ratio(7, 25_557_032) == pytest.approx(0.43, abs=5e-3)
    assert theorem13_ratio(0, 2) == pytest.approx(math.sqrt(0.5))


def test_bits_are_steps_times_bits_of_a_step():
    levels, n = exponential_levels(3), 10**6
    answer = bits_to_gap(levels, n, 0.1, **PROBLEM)
    sigma_squared = 1 + variance_bound(levels, n)
    assert answer.steps == math.ceil(4 * sigma_squared / 0.01)
    assert answer.bits_per_step == elias_bits_bound(n, 3)
    assert answer.bits == answer.steps * answer.bits_per_step
    smooth = bits_to_gap(levels, n, 0.1, radius=1, second_moment=1e-9, smoothness=50)
    assert smooth.steps == math.ceil(50 / 0.1)


def test_workers_share_the_noise():
    one, four = (
        bits_to_gap(exponential_levels(6), 512, 1e-3, **PROBLEM, world_size=w) for w in (1, 4)
    )
    assert four.steps == math.ceil(one.steps / 4)


def test_exponential_levels_save_bits_of_the_index_only():
    # The uniform grid with the same first level has the same variance and sparsity.
    exponential = bits_to_gap(exponential_levels(4), 10**8, 0.1, **PROBLEM)
    uniform = bits_to_gap(uniform_levels(16), 10**8, 0.1, **PROBLEM)
    assert exponential.steps == uniform.steps
    assert exponential.bits < uniform.bits


def test_theorem_23_compares_grids_not_norms():
    result = theorem23(7, 10**5)
    assert result.exponential == pytest.approx(0.0078, abs=5e-5)
    assert result.uniform == pytest.approx(0.12499, abs=5e-6)
    assert result.exponential_linf == pytest.approx(result.exponential, rel=1e-3)
    assert result.printed_exponential == pytest.approx(result.exponential, rel=1e-3)
    assert result.printed_uniform == pytest.approx(result.uniform, rel=1e-3)
    assert result.uniform / result.exponential == pytest.approx(2**7 / 8, rel=1e-2)


def test_arguments_are_checked():
    levels = exponential_levels(3)
    for name in PROBLEM:
        with pytest.raises(ConfigError, match=f"{name} must be a number with 0 < {name}"):
            bits_to_gap(levels, 100, 0.1, **{**PROBLEM, name: 0})
    with pytest.raises(ConfigError, match="gap=nan"):
        bits_to_gap(levels, 100, math.nan, **PROBLEM)
    with pytest.raises(ConfigError, match="world_size=0"):
        bits_to_gap(levels, 100, 0.1, **PROBLEM, world_size=0)
    with pytest.raises(ConfigError, match="take a larger gap"):
        bits_to_gap(levels, 100, 1e-200, **PROBLEM)
    with pytest.raises(ConfigError, match=">= 64, got n=63"):
        theorem13_ratio(3, 63)
    with pytest.raises(ConfigError, match="c=0"):
        theorem23(3, 10, 0)
