import math

import pytest

from slimgrad.core.errors import ConfigError
from slimgrad.theory import dither_variance_bound


def one_hot_variance(step_rms, m, n):
    """n step^2 / 12 of the vector (1, 0, ..., 0), whose rms is 1 / sqrt(n)."""
    return n * max(step_rms / math.sqrt(n), 1 / m) ** 2 / 12


@pytest.mark.parametrize(("step_rms", "m", "n"), [(1.0, 7, 512), (1.0, 7, 49), (0.5, 3, 9)])
def test_one_component_attains_it(step_rms, m, n):
    assert dither_variance_bound(step_rms, m, n) == pytest.approx(one_hot_variance(step_rms, m, n))


@pytest.mark.parametrize("peak", [1.0, 2.0, 6.9, 7.6, 20.0])
def test_no_vector_exceeds_it(peak):
    """n - 1 equal components and a larger one."""
    n, m, step_rms = 512, 7, 1.0
    energy = n - 1 + peak**2
    step = max(step_rms * math.sqrt(energy / n), peak / m)
    exact = n * step**2 / 12 / energy
    assert exact <= dither_variance_bound(step_rms, m, n) * (1 + 1e-12)
    assert (exact == pytest.approx(step_rms**2 / 12)) == (peak < 7)


def test_nothing_has_no_variance():
    assert dither_variance_bound(1.0, 7, 0) == 0.0


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ((0.0, 7, 1), "step_rms must be finite and above 0, got 0.0"),
        ((math.inf, 7, 1), "step_rms must be finite and above 0, got inf"),
        ((1.0, 0, 1), "magnitudes must be an integer >= 1, got 0"),
        ((1.0, 7, -1), "n must be an integer >= 0, got n=-1"),
    ],
)
def test_values_out_of_range_are_named(arguments, message):
    with pytest.raises(ConfigError, match=message):
        dither_variance_bound(*arguments)
