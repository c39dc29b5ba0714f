import itertools
import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from slimgrad.core.errors import ConfigError
from slimgrad.theory import (
    exponential_levels,
    uniform_levels,
    variance_bound,
    worst_case,
    worst_case_variance,
)

EXACT = [
    (exponential_levels(1), {2: 3 / math.sqrt(2) - 2, 3: 0.179449472, 4: math.sqrt(5) - 2}),
    (exponential_levels(1), {8: 0.5, 16: 1.0, 32: 1.828427125, 64: 3.0}),
    (exponential_levels(2), {2: 0.121320344, 3: 0.136000936, 4: 0.150581317, 5: 0.165063509}),
    (exponential_levels(2), {16: 0.318405, 32: 0.546338193, 33: 0.561553}),
    (exponential_levels(3), {64: 0.338536}),
    (uniform_levels(2), {2: 0.121320344, 4: 0.236067977}),
    (uniform_levels(3), {4: 1 / 9}),
]
RELAXED = [
    (2, {16: 0.322321, 32: 0.550893, 64: 1.008036}),
    (3, {512: 1.828427}),
    (4, {8192: 4.656854}),
    (6, {512: 0.152659, 16384: 1.013863}),
    (7, {512: 0.131914}),
]
GRIDS = [exponential_levels(s) for s in (0, 1, 2, 3)] + [
    exponential_levels(2, 0.2),
    uniform_levels(2),
    uniform_levels(5),
    (0.0, 0.3, 0.35, 1.0),
]


def variance_of(vector, levels):
    """sum of (r - l_j)(l_{j+1} - r) of a unit vector."""
    r, grid = np.abs(vector), np.asarray(levels)
    above = np.clip(np.searchsorted(grid, r, side="right"), 1, len(grid) - 1)
    return float(((r - grid[above - 1]) * (grid[above] - r)).sum())


def by_enumeration(levels, n):
    """The maximum over all numbers of components a bin, each solved by a fine search for c."""
    low, high = np.asarray(levels[:-1]), np.asarray(levels[1:])
    best = 0.0
    for split in itertools.product(range(n + 1), repeat=len(low)):
        counts = np.asarray(split)
        if counts.sum() != n or (counts * low**2).sum() > 1 or (counts * high**2).sum() < 1:
            continue
        u = np.linspace(0, 2, 4001)[:, None]
        r = np.clip((low + high) / 2 * u, low, high)
        squares = (counts * r**2).sum(axis=1)
        r = r[np.abs(squares - 1).argmin()]
        r = r / math.sqrt((counts * r**2).sum())
        best = max(best, variance_of(np.repeat(r, counts), levels))
    return best


@pytest.mark.parametrize(("levels", "rows"), EXACT)
def test_known_exact_maxima(levels, rows):
    for n, value in rows.items():
        assert worst_case_variance(levels, n) == pytest.approx(value, abs=6e-7)


@pytest.mark.parametrize(("s", "rows"), RELAXED)
def test_known_relaxed_values(s, rows):
    for n, value in rows.items():
        relaxed = worst_case_variance(exponential_levels(s), n, relaxed=True)
        assert relaxed == pytest.approx(value, abs=6e-7)
    assert worst_case_variance(uniform_levels(4), 16, relaxed=True) == pytest.approx(0.25)


def test_known_maximisers():
    pair = worst_case(exponential_levels(2), 2)
    assert pair.counts == (0, 0, 2)
    assert pair.magnitudes[2] == pytest.approx(1 / math.sqrt(2))
    three = worst_case(exponential_levels(1), 3)
    assert three.counts == (1, 2)
    assert three.magnitudes == pytest.approx((0.22942, 0.68825), abs=1e-5)
    four = worst_case(exponential_levels(1), 4)
    assert four.counts == (2, 2)
    assert four.magnitudes == pytest.approx((0.22361, 0.67082), abs=1e-5)
    many = worst_case(exponential_levels(2), 32)
    assert many.counts == (31, 0, 1)
    assert many.magnitudes == pytest.approx((0.12217, 0.0, 0.73302), abs=1e-5)


@pytest.mark.parametrize("levels", GRIDS)
def test_enumeration_of_all_counts_finds_no_more(levels):
    for n in (1, 2, 3, 5, 7) if len(levels) < 5 else (1, 2, 4):
        assert worst_case_variance(levels, n) == pytest.approx(by_enumeration(levels, n), abs=2e-4)
        assert worst_case_variance(levels, n) >= by_enumeration(levels, n) - 1e-9


@settings(max_examples=60, deadline=None)
@given(st.sampled_from([*GRIDS, exponential_levels(6)]), st.integers(1, 300))
def test_the_maximiser_is_a_unit_vector_with_that_variance_below_the_bounds(levels, n):
    found = worst_case(levels, n)
    vector = np.repeat(found.magnitudes, found.counts)
    assert len(vector) == n
    assert (vector**2).sum() == pytest.approx(1.0)
    assert variance_of(vector, levels) == pytest.approx(found.variance, abs=1e-9)
    relaxed = worst_case_variance(levels, n, relaxed=True)
    assert found.variance <= relaxed + 1e-9
    assert relaxed <= variance_bound(levels, n) + 1e-9


@settings(max_examples=100, deadline=None)
@given(
    st.sampled_from(GRIDS),
    st.lists(st.floats(-1, 1), min_size=1, max_size=30).filter(lambda v: np.linalg.norm(v) > 1e-3),
)
def test_no_vector_is_worse(levels, vector):
    unit = np.asarray(vector) / np.linalg.norm(vector)
    assert variance_of(np.minimum(np.abs(unit), 1), levels) <= (
        worst_case_variance(levels, len(unit)) + 1e-9
    )


@given(st.sampled_from(GRIDS), st.integers(1, 10**9))
def test_relaxed_values_stay_below_the_bound_and_grow_with_n(levels, n):
    relaxed = worst_case_variance(levels, n, relaxed=True)
    assert relaxed <= variance_bound(levels, n) * (1 + 1e-12) + 1e-12
    assert relaxed <= worst_case_variance(levels, 2 * n, relaxed=True) * (1 + 1e-12) + 1e-12


def test_long_vectors():
    levels = exponential_levels(3)
    exact = worst_case(levels, 10**9)
    assert exact.counts == (10**9, 0, 0, 0)
    assert exact.variance == pytest.approx(0.125 * math.sqrt(10**9) - 1)


def test_grids_with_levels_that_nearly_vanish():
    levels = (0.0, 1e-320, 1e-10, 1.0)
    assert variance_bound(levels, 4) == pytest.approx(1.0)
    for relaxed in (False, True):
        assert worst_case_variance(levels, 4, relaxed=relaxed) == pytest.approx(1.0, abs=1e-6)


def test_too_many_counts_to_try_say_what_to_take():
    with pytest.raises(ConfigError, match=r"take relaxed=True \(a bound, here 0.131914\)"):
        worst_case(exponential_levels(7), 512)


@pytest.mark.parametrize("n", [0, -2, 1.5])
def test_a_bad_length_is_refused(n):
    with pytest.raises(ConfigError, match=f"n={n!r}"):
        worst_case((0, 1), n)
    with pytest.raises(ConfigError, match=f"n={n!r}"):
        worst_case_variance((0, 1), n, relaxed=True)
