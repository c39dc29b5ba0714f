import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from slimgrad.core.errors import ConfigError
from slimgrad.theory import (
    exponential_levels,
    rounding_resolution_bound,
    uniform_levels,
    variance_bound,
)

EXPONENTIAL = [
    (512, {2: (4.657, 2.370), 3: (1.828, 0.999), 4: (0.569, 0.365), 6: (0.153, 0.125)}),
    (1024, {2: (7.000, 3.529), 3: (3.000, 1.561), 4: (1.014, 0.618), 7: (0.139, 0.125)}),
    (8192, {2: (21.627, 10.824), 3: (10.314, 5.179), 4: (4.657, 2.372), 7: (0.236, 0.125)}),
    (16384, {2: (31.0, 15.507), 3: (15.0, 7.515), 6: (1.014, 0.618), 7: (0.347, 0.207)}),
]
UNIFORM = [
    (512, {3: (6.543, 3.301), 7: (2.232, 1.190), 15: (0.569, 0.404), 127: (0.008, 0.008)}),
    (8192, {3: (29.17, 14.59), 7: (11.93, 5.984), 15: (5.034, 2.558), 127: (0.127, 0.125)}),
]
# Exact maxima found by enumerating how many components lie in each bin: (s, n, value).
EXACT_L2_MAXIMA = [
    (1, 2, 0.121320344),
    (1, 3, 0.179449472),
    (1, 4, 0.236067977),
    (1, 8, 0.5),
    (1, 64, 3.0),
    (2, 5, 0.165063509),
    (2, 16, 0.318405),
    (2, 32, 0.546338193),
    (3, 64, 0.338536),
]


def measured_variance(vector, levels, norm):
    """Relative variance of one vector: sum of (r - l_j)(l_{j+1} - r) over sum of r^2."""
    magnitudes = np.abs(np.asarray(vector, dtype=np.float64))
    scale = magnitudes.max() if norm == "linf" else math.sqrt(float((magnitudes**2).sum()))
    r = np.minimum(magnitudes / scale, 1.0)
    grid = np.asarray(levels)
    above = np.clip(np.searchsorted(grid, r, side="right"), 1, len(grid) - 1)
    return float(((r - grid[above - 1]) * (grid[above] - r)).sum() / (r**2).sum())


@pytest.mark.parametrize(("n", "rows"), EXPONENTIAL)
def test_known_bounds_of_exponential_grids(n, rows):
    for s, (l2, linf) in rows.items():
        levels = exponential_levels(s)
        assert variance_bound(levels, n) == pytest.approx(l2, abs=6e-4)
        assert variance_bound(levels, n, norm="linf") == pytest.approx(linf, abs=1.1e-3)


@pytest.mark.parametrize(("n", "rows"), UNIFORM)
def test_known_bounds_of_uniform_grids(n, rows):
    for s, (l2, linf) in rows.items():
        levels = uniform_levels(s)
        assert variance_bound(levels, n) == pytest.approx(l2, abs=6e-3)
        assert variance_bound(levels, n, norm="linf") == pytest.approx(linf, abs=6e-3)


def test_bounds_to_six_digits():
    assert variance_bound(exponential_levels(2), 32) == pytest.approx(0.569444, abs=1e-6)
    assert variance_bound(exponential_levels(3), 8192) == pytest.approx(10.313708, abs=1e-6)
    assert variance_bound(uniform_levels(127), 8192) == pytest.approx(0.12698, abs=1e-5)
    linf = [variance_bound(exponential_levels(2), n, "linf") for n in (16, 8192)]
    assert linf == pytest.approx([0.195971, 10.824062], abs=1e-6)
    assert variance_bound((0, 1), 2, "linf") == pytest.approx(0.207107, abs=1e-6)


@pytest.mark.parametrize(("s", "n", "maximum"), EXACT_L2_MAXIMA)
def test_bound_is_never_below_the_exact_maximum(s, n, maximum):
    assert variance_bound(exponential_levels(s), n) >= maximum - 1e-9


def test_the_vector_that_breaks_the_older_bound_stays_below_this_one():
    vector = [0.12217] * 31 + [0.73302]
    measured = measured_variance(vector, exponential_levels(2), "l2")
    assert measured == pytest.approx(0.546338, abs=1e-5)
    assert math.sqrt(2) - 7 / 8 < measured < variance_bound(exponential_levels(2), 32)


def test_equal_components_attain_the_l2_bound():
    for s, n in ((2, 512), (3, 8192)):
        levels = exponential_levels(s)
        h = levels[1] * math.sqrt(n)
        assert measured_variance(np.ones(n), levels, "l2") == pytest.approx(h - 1)
        assert variance_bound(levels, n) == pytest.approx(h - 1)


def test_the_stated_vector_attains_the_linf_bound():
    for s, n in ((2, 16), (2, 8192), (4, 8192)):
        levels = exponential_levels(s)
        low = (math.sqrt(1 + (n - 1) * levels[1] ** 2) - 1) / ((n - 1) * levels[1])
        vector = np.full(n, low)
        vector[0] = 1
        measured = measured_variance(vector, levels, "linf")
        assert measured == pytest.approx(variance_bound(levels, n, "linf"))


GRIDS = [
    exponential_levels(0),
    exponential_levels(2),
    exponential_levels(6),
    exponential_levels(3, 0.2),
    uniform_levels(3),
    uniform_levels(15),
    (0.0, 0.3, 0.35, 1.0),
]


@settings(max_examples=300, deadline=None)
@given(
    st.lists(st.one_of(st.just(0.0), st.floats(1e-6, 1e6)), min_size=1, max_size=40),
    st.sampled_from(GRIDS),
    st.sampled_from(["l2", "linf"]),
)
def test_no_vector_exceeds_the_bound(vector, levels, norm):
    if any(vector):
        bound = variance_bound(levels, len(vector), norm)
        assert measured_variance(vector, levels, norm) <= bound + 1e-12


@given(st.sampled_from(GRIDS), st.integers(1, 5000))
def test_bounds_grow_with_the_bucket_and_linf_is_never_worse(levels, n):
    assert variance_bound(levels, n) <= variance_bound(levels, n + 1)
    assert variance_bound(levels, n, "linf") <= variance_bound(levels, n) + 1e-12


def test_an_empty_bucket_has_no_variance():
    assert variance_bound((0, 1), 0) == 0.0
    assert rounding_resolution_bound((0, 1), 0, 2**-16) == 0.0


@given(
    st.sampled_from(GRIDS),
    st.lists(st.floats(1e-3, 1.0), min_size=1, max_size=30),
    st.sampled_from([2.0**-4, 2.0**-8]),
)
def test_coarse_probabilities_stay_within_both_bounds(levels, vector, resolution):
    # The exact mean squared error of rounding with probabilities moved to the given grid.
    grid = np.asarray(levels)
    r = np.asarray(vector) / np.linalg.norm(vector)
    above = np.clip(np.searchsorted(grid, r, side="right"), 1, len(grid) - 1)
    low, width = grid[above - 1], grid[above] - grid[above - 1]
    p = np.round((r - low) / width / resolution) * resolution
    error = float((p * (grid[above] - r) ** 2 + (1 - p) * (low - r) ** 2).sum())
    allowed = variance_bound(levels, len(vector)) + rounding_resolution_bound(
        levels, len(vector), resolution
    )
    assert error <= allowed + 1e-12


@pytest.mark.parametrize("levels", [(), (0.0,), (0.1, 1.0), (0.0, 0.9), (0.0, 0.5, 0.5, 1.0)])
def test_levels_that_do_not_ascend_from_0_to_1_are_refused(levels):
    with pytest.raises(ConfigError, match="ascend strictly from 0 to 1"):
        variance_bound(levels, 4)


@pytest.mark.parametrize("n", [-1, 2.0, True])
def test_a_bad_length_is_refused(n):
    with pytest.raises(ConfigError, match=f"n={n!r}"):
        variance_bound((0, 1), n)
    with pytest.raises(ConfigError, match=f"n={n!r}"):
        rounding_resolution_bound((0, 1), n, 0.5)


def test_an_unknown_norm_names_the_nearest():
    with pytest.raises(ConfigError, match="did you mean 'linf'"):
        variance_bound((0, 1), 4, norm="linff")
