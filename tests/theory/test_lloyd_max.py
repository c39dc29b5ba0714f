import math
from itertools import pairwise

import pytest
from scipy import integrate, stats

from slimgrad.core.errors import ConfigError
from slimgrad.theory import lloyd_max_normal


@pytest.mark.parametrize("bits", [1, 2, 3, 4, 5])
def test_every_level_is_the_mean_of_the_numbers_nearest_to_it(bits):
    levels = lloyd_max_normal(bits).levels
    assert len(levels) == 2 ** (bits - 1)
    ends = [0.0, *((a + b) / 2 for a, b in pairwise(levels)), math.inf]
    for level, (low, high) in zip(levels, pairwise(ends), strict=True):
        mass = stats.norm.cdf(high) - stats.norm.cdf(low)
        first, _ = integrate.quad(lambda x: x * stats.norm.pdf(x), low, high)
        assert level == pytest.approx(first / mass, abs=1e-8)


def test_one_bit_is_the_mean_magnitude():
    assert lloyd_max_normal(1).levels == pytest.approx((math.sqrt(2 / math.pi),))
    assert lloyd_max_normal(1).distortion == pytest.approx(1 - 2 / math.pi)


@pytest.mark.parametrize("bits", [1, 2, 3])
def test_the_distortion_is_the_integral_of_the_squared_error(bits):
    best = lloyd_max_normal(bits)
    assert distortion(best.levels) == pytest.approx(best.distortion, abs=1e-8)


def test_other_levels_are_worse():
    best = lloyd_max_normal(3)
    for j in range(4):
        for factor in (0.97, 1.03):
            other = [*best.levels]
            other[j] *= factor
            assert distortion(other) > best.distortion


def distortion(levels):
    def error(x):
        return min((x - level) ** 2 for level in levels) * stats.norm.pdf(x)

    ends = [0.0, *((a + b) / 2 for a, b in pairwise(levels)), 12.0]
    return 2 * sum(integrate.quad(error, low, high)[0] for low, high in pairwise(ends))


@pytest.mark.parametrize("bits", [0, 9, 2.0, True])
def test_bits_out_of_range_are_named(bits):
    with pytest.raises(ConfigError, match="bits must be an integer from 1 to 8"):
        lloyd_max_normal(bits)
