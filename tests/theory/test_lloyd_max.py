import math
from itertools import pairwise

import pytest
from scipy import integrate, stats

from slimgrad.core.errors import ConfigError
from slimgrad.theory import normal_distortion, normal_levels


@pytest.mark.parametrize("bits", [1, 2, 3, 4, 5])
def test_every_level_is_the_mean_of_the_numbers_nearest_to_it(bits):
    levels = normal_levels(bits)
    assert len(levels) == 2 ** (bits - 1)
    ends = [0.0, *((a + b) / 2 for a, b in pairwise(levels)), math.inf]
    for level, (low, high) in zip(levels, pairwise(ends), strict=True):
        mass = stats.norm.cdf(high) - stats.norm.cdf(low)
        first, _ = integrate.quad(lambda x: x * stats.norm.pdf(x), low, high)
        assert level == pytest.approx(first / mass, abs=1e-8)


def test_one_bit_is_the_mean_magnitude():
    assert normal_levels(1) == pytest.approx((math.sqrt(2 / math.pi),))
    assert normal_distortion(normal_levels(1)) == pytest.approx(1 - 2 / math.pi)


@pytest.mark.parametrize("levels", [normal_levels(3), (0.3, 1.0, 2.5), (1.0,)])
def test_the_distortion_is_the_integral_of_the_squared_error(levels):
    def error(x):
        return min((x - level) ** 2 for level in levels) * stats.norm.pdf(x)

    ends = [0.0, *((a + b) / 2 for a, b in pairwise(levels)), 12.0]
    pairs = pairwise(ends)
    integral = 2 * sum(integrate.quad(error, low, high)[0] for low, high in pairs)
    assert normal_distortion(levels) == pytest.approx(integral, abs=1e-8)


def test_other_levels_are_worse():
    levels = normal_levels(3)
    best = normal_distortion(levels)
    for j in range(4):
        for factor in (0.97, 1.03):
            other = [*levels]
            other[j] *= factor
            assert normal_distortion(tuple(other)) > best


@pytest.mark.parametrize("bits", [0, 7, 2.0, True])
def test_bits_out_of_range_are_named(bits):
    with pytest.raises(ConfigError, match=f"bits must be an integer from 1 to 6, got {bits!r}"):
        normal_levels(bits)
