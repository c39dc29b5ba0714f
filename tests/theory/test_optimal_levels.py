import itertools

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from slimgrad.core.errors import ConfigError
from slimgrad.theory import (
    MagnitudeDensity,
    expected_optimal_ratio,
    expected_variance,
    exponential_levels,
    minimax_levels,
    optimal_levels,
    optimal_ratio,
    uniform_levels,
    variance_bound,
    worst_case_variance,
)


def bucket_density(norm="l2", bits=9):
    vector = np.random.default_rng(0).laplace(size=2 ** (bits + 5))
    return MagnitudeDensity.from_vector(vector, 2**bits, norm)


def test_ratios_of_least_bound():
    assert optimal_ratio(3, 8192) == pytest.approx(0.225, abs=5e-4)
    assert optimal_ratio(6, 8192) == pytest.approx(0.412, abs=5e-4)
    bounds = [variance_bound(exponential_levels(s, optimal_ratio(s, 8192)), 8192) for s in (3, 6)]
    assert bounds == pytest.approx([0.827, 0.250], abs=5e-4)


@pytest.mark.parametrize("norm", ["l2", "linf"])
@pytest.mark.parametrize(("s", "n"), [(1, 2), (2, 512), (6, 512), (30, 10**9), (126, 64)])
def test_no_other_ratio_has_a_smaller_bound(s, n, norm):
    best = variance_bound(exponential_levels(s, optimal_ratio(s, n, norm)), n, norm)
    for ratio in np.linspace(0.01, 0.99, 197):
        assert best <= variance_bound(exponential_levels(s, float(ratio)), n, norm) + 1e-9


@pytest.mark.parametrize(("s", "n"), [(1, 4), (2, 512), (3, 8192), (6, 512), (30, 10**9)])
def test_minimax_levels_have_the_least_relaxed_worst_case(s, n):
    levels = minimax_levels(s, n)
    assert len(levels) == s + 2
    best = worst_case_variance(levels, n, relaxed=True)
    rivals = [uniform_levels(s + 1)]
    rivals += [exponential_levels(s, float(ratio)) for ratio in np.linspace(0.02, 0.98, 49)]
    rng = np.random.default_rng(1)
    for scale in (1e-3, 1e-2, 0.1):
        for _ in range(20):
            moved = np.asarray(levels) * np.exp(scale * rng.standard_normal(s + 2))
            rivals.append((0.0, *np.sort(moved[1:-1]).clip(1e-12, 1 - 1e-12), 1.0))
    for rival in rivals:
        if (np.diff(rival) > 0).all():
            assert best <= worst_case_variance(rival, n, relaxed=True) * (1 + 1e-9) + 1e-12


def test_minimax_levels_for_the_maximum_norm_and_without_inner_levels():
    assert minimax_levels(0, 512) == (0.0, 1.0)
    levels = minimax_levels(6, 512, "linf")
    rivals = (exponential_levels(6), uniform_levels(7))
    assert all(variance_bound(levels, 512, "linf") < variance_bound(r, 512, "linf") for r in rivals)
    assert minimax_levels(126, 16, "linf") == uniform_levels(127)


@settings(max_examples=40, deadline=None)
@given(
    st.lists(st.floats(0.01, 0.99), min_size=4, max_size=12, unique=True),
    st.integers(1, 3),
    st.integers(0, 2**32 - 1),
)
def test_coordinate_descent_ends_near_the_best_of_all_atoms(magnitudes, s, seed):
    # For atoms the expected variance is least with every level on an atom, so trying all is exact.
    weights = np.random.default_rng(seed).random(len(magnitudes)) + 0.1
    density = MagnitudeDensity(magnitudes, weights)
    found = expected_variance(optimal_levels(density, s), density)
    best = min(
        expected_variance((0.0, *inner, 1.0), density)
        for inner in itertools.combinations(sorted(magnitudes), s)
    )
    start = expected_variance(uniform_levels(s + 1), density)
    assert best - 1e-12 <= found <= start
    if s == 1:
        assert found == pytest.approx(best, abs=1e-12)


@pytest.mark.parametrize("norm", ["l2", "linf"])
@pytest.mark.parametrize("s", [2, 6, 30])
def test_levels_for_a_density_beat_every_named_grid(norm, s):
    density = bucket_density(norm)
    best = expected_variance(optimal_levels(density, s), density)
    ratio = expected_optimal_ratio(density, s)
    exponential = expected_variance(exponential_levels(s, ratio), density)
    assert best < exponential
    assert exponential <= expected_variance(exponential_levels(s), density)
    assert best < expected_variance(uniform_levels(s + 1), density)
    # No single level can be moved to advantage: each solves its own equation.
    levels = optimal_levels(density, s)
    for j in range(1, s + 1):
        for factor in (0.99, 1.01):
            moved = (*levels[:j], levels[j] * factor, *levels[j + 1 :])
            if moved[j - 1] < moved[j] < moved[j + 1]:
                assert best <= expected_variance(moved, density) * (1 + 1e-4)


def test_the_best_ratio_for_a_density_is_no_worse_than_any_other():
    density = bucket_density()
    best = expected_variance(exponential_levels(6, expected_optimal_ratio(density, 6)), density)
    for ratio in np.linspace(0.05, 0.95, 91):
        assert best <= expected_variance(exponential_levels(6, float(ratio)), density) + 1e-9


def test_arguments_are_checked():
    density = MagnitudeDensity([0.1, 0.2, 1.0])
    assert optimal_levels(density, 0) == (0.0, 1.0)
    with pytest.raises(ConfigError, match="take s <= 2"):
        optimal_levels(density, 3)
    with pytest.raises(ConfigError, match="s=-1"):
        optimal_levels(density, -1)
    with pytest.raises(ConfigError, match="sweeps=0"):
        optimal_levels(density, 1, sweeps=0)
    with pytest.raises(ConfigError, match="s=0"):
        expected_optimal_ratio(density, 0)
    with pytest.raises(ConfigError, match="s=0"):
        optimal_ratio(0, 512)
    with pytest.raises(ConfigError, match="n=0"):
        minimax_levels(2, 0)
    with pytest.raises(ConfigError, match="did you mean 'linf'"):
        minimax_levels(2, 512, "inf")
