import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from slimgrad.core.errors import ConfigError
from slimgrad.theory import (
    elias_bits_bound,
    expected_elias_bits,
    measured_elias_bits,
    omega_bits,
    theorem5_counterexample,
    theorem5_printed,
)
from slimgrad.theory.elias import gap_bits_hull

BOUNDS = {(1024, 1): 992, (1024, 2): 1525, (4096, 2): 3872, (4096, 3): 7541, (65536, 2): 17440}
VERTICES = {1: 1, 2: 3, 4: 6, 16: 11, 32: 12, 64: 13, 256: 16, 512: 17, 1024: 18, 8192: 21}


def test_known_bounds():
    for (n, s), bits in BOUNDS.items():
        assert elias_bits_bound(n, s) == pytest.approx(bits, abs=0.5)
    assert elias_bits_bound(65536, 3) == pytest.approx(38944, abs=0.5)


def test_the_hull_passes_through_its_vertices_and_lies_above_every_word():
    for gap, bits in VERTICES.items():
        assert gap_bits_hull(gap) == bits
    assert gap_bits_hull(65536) == 28
    for gap in (*range(1, 3000), 2**40, 2**40 - 1, 2**60):
        assert gap_bits_hull(gap) >= omega_bits(gap)
    gaps = np.geomspace(1, 2.0**59, 400)
    bits = np.asarray([gap_bits_hull(gap) for gap in gaps])
    slopes = np.diff(bits) / np.diff(gaps)
    assert (slopes >= 0).all()
    assert (np.diff(slopes) <= 1e-9).all()


@given(st.lists(st.integers(-3, 3), min_size=1, max_size=60))
def test_measured_bits_are_those_of_the_written_code(indices):
    def word(k):
        text = "0"
        while k > 1:
            text, k = f"{k:b}{text}", len(f"{k:b}") - 1
        return text

    stream, last = "", 0
    for place, index in enumerate(indices, 1):
        if index:
            stream += word(place - last) + "+-"[index < 0] + word(abs(index))
            last = place
    assert measured_elias_bits(indices) == 32 + len(stream)


@pytest.mark.parametrize(("n", "s"), [(1024, 1), (4096, 2)])
def test_no_measured_mean_exceeds_the_bound(n, s):
    # Equal, Gaussian and one-sided components, 200 draws each; the bound exceeds the mean of the
    # worst of them by a third, the mean's deviation is below 1 %.
    rng = np.random.default_rng(0)
    grid = np.asarray([0.0, *(2.0**-j for j in range(s, -1, -1))])
    for vector, low, high in (
        (np.ones(n), {1024: 630, 4096: 2475}[n], {1024: 675, 4096: 2530}[n]),
        (rng.standard_normal(n), {1024: 520, 4096: 2060}[n], {1024: 580, 4096: 2200}[n]),
    ):
        r = np.abs(vector) / np.linalg.norm(vector)
        j = np.clip(np.searchsorted(grid, r, side="right"), 1, s + 1) - 1
        up = rng.random((200, n)) < (r - grid[j]) / (grid[j + 1] - grid[j])
        mean = np.mean([measured_elias_bits(j + row) for row in up])
        assert low <= mean <= high
        assert mean <= elias_bits_bound(n, s)


def test_expected_bits_are_those_of_drawn_components():
    p = [0.7, 0.2, 0.06, 0.04]
    draws = np.random.default_rng(1).choice(4, size=2**17, p=p)
    # One component's bits deviate by less than 4: six deviations of the mean are 0.07.
    measured = (measured_elias_bits(draws) - 32) / len(draws)
    assert measured == pytest.approx(expected_elias_bits(p), abs=0.07)
    assert expected_elias_bits([1.0]) == expected_elias_bits([3, 0]) == 0.0


def test_the_bound_for_another_grid_takes_its_own_nonzeros():
    assert elias_bits_bound(4096, 2, nonzeros=256.0) == elias_bits_bound(4096, 2)
    assert elias_bits_bound(4096, 2, nonzeros=4096) == 32 + 4096 * (1 + 1 + omega_bits(3))
    with pytest.raises(ConfigError, match="nonzeros=5"):
        elias_bits_bound(4, 2, nonzeros=5)


@given(st.integers(1, 10**9), st.integers(0, 20))
def test_the_bound_grows_with_length_and_levels(n, s):
    assert elias_bits_bound(n, s) <= elias_bits_bound(n + 1, s) * (1 + 1e-12)
    assert elias_bits_bound(n, s) <= elias_bits_bound(n, s + 1) * (1 + 1e-12)


def test_the_printed_theorem_is_exceeded_by_equal_components():
    for s, printed in ((2, 12662), (3, 23154)):
        example = theorem5_counterexample(65536, s)
        assert example.printed_bits == pytest.approx(printed, abs=0.5)
        assert example.printed_bits < example.expected_bits < example.bits_bound
        rng = np.random.default_rng(s)
        draws = rng.random((100, 65536)) < 2.0**s / 256
        bits = [measured_elias_bits(row) for row in draws]
        error = float(np.std(bits)) / 10
        assert np.mean(bits) == pytest.approx(example.expected_bits, abs=6 * error)
        assert np.mean(bits) - 2 * error > example.printed_bits


def test_a_vector_too_short_for_the_theorem_says_so():
    with pytest.raises(ConfigError, match=r"Theorem 5 needs .* use elias_bits_bound"):
        theorem5_printed(16, 2)
    with pytest.raises(ConfigError, match="Theorem 5 needs"):
        theorem5_counterexample(16, 2)
    assert theorem5_printed(4096, 2) > 32


def test_arguments_are_checked():
    with pytest.raises(ConfigError, match="n=0"):
        elias_bits_bound(0, 2)
    with pytest.raises(ConfigError, match="s=-1"):
        elias_bits_bound(4, -1)
    with pytest.raises(ConfigError, match="gap=0"):
        gap_bits_hull(0.5 - 0.5)
    with pytest.raises(ConfigError, match="must be integers"):
        measured_elias_bits([0.5])
    with pytest.raises(ConfigError, match="at least one entry"):
        measured_elias_bits([])
    with pytest.raises(ConfigError, match="probabilities must"):
        expected_elias_bits([-1.0])


def test_words_grow_slowly():
    for k in range(1, 400):
        assert omega_bits(2**k) <= 1 + k + 2 * math.log2(1 + k) + 2.826
        assert omega_bits(2**k) <= 1 + 2.5 * k
