"""The bounds beside the main one: linear program, lower bound, grids without zero, sparsity."""

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from slimgrad.core.errors import ConfigError
from slimgrad.theory import (
    expected_nonzeros,
    expected_nonzeros_bound,
    exponential_levels,
    lemma17_printed,
    lp_variance_bound,
    no_zero_variance_bound,
    uniform_levels,
    variance_bound,
    variance_lower_bound,
    worst_case_variance,
)

GRIDS = [
    exponential_levels(0),
    exponential_levels(2),
    exponential_levels(6),
    exponential_levels(3, 0.2),
    uniform_levels(3),
    uniform_levels(15),
    (0.0, 0.3, 0.35, 1.0),
]


def lp_by_vertices(levels, n):
    """The linear program by trying every pair of bins and every vertex of two constraints."""
    squares, gains = np.asarray(levels[:-1]) ** 2, np.diff(levels) ** 2 / 4
    best = 0.0
    for i in range(len(gains)):
        best = max(best, gains[i] * min(n, 1 / squares[i] if squares[i] else n))
        for j in range(len(gains)):
            matrix = np.array([[1.0, 1.0], [squares[i], squares[j]]])
            if squares[i] != squares[j]:
                counts = np.linalg.solve(matrix, [n, 1.0])
                if counts.min() >= -1e-12:
                    best = max(best, counts @ [gains[i], gains[j]])
    return best


def test_known_values_of_the_linear_program():
    assert lp_variance_bound(exponential_levels(2), 64) == pytest.approx(1.1875)
    assert lp_variance_bound(exponential_levels(3), 4096) == pytest.approx(16.2344, abs=1e-4)
    assert lp_variance_bound(exponential_levels(2), 1024) == pytest.approx(16.19, abs=1e-2)
    for s, n in ((1, 4), (3, 100), (7, 10**9)):
        closed = 1 / 4 + (n - 4) * 4.0**-s / 4
        assert lp_variance_bound(exponential_levels(s), n) == pytest.approx(closed)


@given(st.sampled_from(GRIDS), st.integers(1, 10**6))
def test_the_linear_program_is_solved_and_bounds_the_worst_case(levels, n):
    value = lp_variance_bound(levels, n)
    assert value == pytest.approx(lp_by_vertices(levels, n), rel=1e-6)
    assert value >= worst_case_variance(levels, n, relaxed=True) * (1 - 1e-12) - 1e-12


@given(st.sampled_from(GRIDS), st.integers(1, 10**6), st.sampled_from(["l2", "linf"]))
def test_lower_bounds_stay_below_upper_bounds_and_grow(levels, n, norm):
    lower = variance_lower_bound(levels, n, norm)
    assert 0 <= lower <= variance_bound(levels, n, norm) * (1 + 1e-12) + 1e-12
    assert lower <= variance_lower_bound(levels, n + 1, norm) + 1e-12
    if norm == "l2":
        assert lower >= levels[1] * math.sqrt(n) - 1 - 1e-12


@pytest.mark.parametrize("levels", GRIDS[:5])
def test_the_l2_lower_bound_is_the_best_of_equal_components(levels):
    for n in (1, 2, 3, 9, 40, 200):
        grid = np.asarray(levels)
        best = 0.0
        for k in range(1, n + 1):
            r = 1 / math.sqrt(k)
            j = max(1, int((grid < r).sum()))
            best = max(best, k * (r - grid[j - 1]) * (grid[min(j, len(grid) - 1)] - r))
        assert variance_lower_bound(levels, n) == pytest.approx(best, abs=1e-12)
        assert variance_lower_bound(levels, n) <= worst_case_variance(levels, n) + 1e-9


def test_bounds_meet_where_they_are_tight():
    for s, n in ((2, 512), (3, 8192), (3, 10**9)):
        levels = exponential_levels(s)
        assert variance_lower_bound(levels, n) == pytest.approx(variance_bound(levels, n))
        linf = variance_lower_bound(levels, n, "linf")
        assert linf == pytest.approx(variance_bound(levels, n, "linf"))


def no_zero_variance(vector, levels, norm):
    magnitudes = np.abs(vector)
    scale = magnitudes.max() if norm == "linf" else np.linalg.norm(vector)
    grid, r = np.concatenate([-np.asarray(levels)[::-1], levels]), np.minimum(magnitudes / scale, 1)
    above = np.clip(np.searchsorted(grid, r, side="right"), 1, len(grid) - 1)
    return float(((r - grid[above - 1]) * (grid[above] - r)).sum() / (r**2).sum())


NO_ZERO = [[2.0**-j for j in range(3, -1, -1)], [(2 * j + 1) / 15 for j in range(8)], [0.3, 1.0]]


def test_known_values_without_a_zero_level():
    assert no_zero_variance_bound(NO_ZERO[0], 8192) == pytest.approx(128, rel=2e-3)
    eight = [2.0**-j for j in range(7, -1, -1)]
    assert no_zero_variance_bound(eight, 8192) == pytest.approx(0.625, abs=1e-4)
    # kappa is 1/3 for the bin from 1/15 to 3/15.
    assert no_zero_variance_bound(NO_ZERO[1], 8192) == pytest.approx(8191 / 225 + 1 / 3)
    sparse = np.zeros(8192)
    sparse[0] = 1
    for norm in ("l2", "linf"):
        assert no_zero_variance(sparse, NO_ZERO[0], norm) == pytest.approx(8191 / 64)


@given(
    st.sampled_from(NO_ZERO),
    st.lists(st.floats(-1, 1), min_size=1, max_size=40).filter(lambda v: np.linalg.norm(v) > 1e-3),
    st.sampled_from(["l2", "linf"]),
)
def test_no_vector_exceeds_the_bound_without_a_zero_level(levels, vector, norm):
    bound = no_zero_variance_bound(levels, len(vector))
    assert no_zero_variance(np.asarray(vector), levels, norm) <= bound + 1e-12


@pytest.mark.parametrize("levels", [(), (0.0, 1.0), (0.5, 0.9), (0.5, 0.4, 1.0), None, "a"])
def test_grids_without_zero_are_checked(levels):
    with pytest.raises(ConfigError, match="ascend strictly to 1"):
        no_zero_variance_bound(levels, 4)


@given(
    st.sampled_from(GRIDS),
    st.lists(st.floats(-1, 1), min_size=1, max_size=40).filter(lambda v: np.linalg.norm(v) > 1e-3),
)
def test_expected_nonzeros_stay_below_the_bound(levels, vector):
    magnitudes = np.abs(vector) / np.linalg.norm(vector)
    expected = expected_nonzeros(levels, np.minimum(magnitudes, 1))
    assert expected <= expected_nonzeros_bound(levels, len(vector)) + 1e-9
    largest = np.abs(vector) / np.abs(vector).max()
    assert expected_nonzeros(levels, largest) <= expected_nonzeros_bound(
        levels, len(vector), "linf"
    )


def test_expected_nonzeros_are_those_of_drawn_vectors():
    rng = np.random.default_rng(0)
    vector = rng.laplace(size=256)
    r = np.abs(vector) / np.linalg.norm(vector)
    levels = exponential_levels(3)
    drawn = (rng.random((20_000, 256)) < np.minimum(1, r / levels[1])).sum(axis=1)
    # The mean of 20,000 draws of deviation below 8 is off by 6 deviations with P < 1e-8.
    assert drawn.mean() == pytest.approx(expected_nonzeros(levels, r), abs=6 * 8 / 20_000**0.5)


def test_equal_components_attain_the_sparsity_bound_below_the_printed_lemma():
    for s, n in ((2, 4096), (3, 1024)):
        bound = expected_nonzeros_bound(exponential_levels(s), n)
        assert bound == pytest.approx(2**s * math.sqrt(n))
        equal = expected_nonzeros(exponential_levels(s), np.full(n, n**-0.5))
        assert equal == pytest.approx(bound)
        assert lemma17_printed(s, n) == pytest.approx(bound + 4**s)


def test_arguments_are_checked():
    with pytest.raises(ConfigError, match="divide by the norm"):
        expected_nonzeros((0, 1), [2.0])
    for function in (lp_variance_bound, variance_lower_bound):
        with pytest.raises(ConfigError, match="n=0"):
            function((0, 1), 0)
        with pytest.raises(ConfigError, match="ascend"):
            function((0.5, 1), 4)
    for function in (variance_lower_bound, expected_nonzeros_bound):
        with pytest.raises(ConfigError, match="unknown norm"):
            function((0, 1), 4, "l1")
    with pytest.raises(ConfigError, match="s=501"):
        lemma17_printed(501, 4)
