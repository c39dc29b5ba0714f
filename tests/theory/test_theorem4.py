import math

import numpy as np
import pytest

from slimgrad.core.errors import ConfigError
from slimgrad.theory import (
    exponential_levels,
    theorem4_counterexample,
    theorem4_printed,
    variance_bound,
    worst_case_variance,
)

PRINTED = {
    (1, 4): 0.375,
    (1, 8): 0.539214,
    (1, 16): 1.125,
    (2, 16): 0.375,
    (2, 32): 0.539214,
    (2, 64): 1.125,
    (2, 1024): 7.125,
    (6, 8192): 0.539214,
    (7, 8192): 0.25,
}


def test_printed_values():
    for (s, d), value in PRINTED.items():
        assert theorem4_printed(s, d) == pytest.approx(value, abs=1e-6)


@pytest.mark.parametrize("s", [2, 3, 4, 5, 8])
def test_the_counterexample_is_a_unit_vector_above_the_printed_value(s):
    example = theorem4_counterexample(s)
    r = np.full(example.d, example.small)
    r[0] = example.large
    assert (r**2).sum() == pytest.approx(1)
    low, high = 0.5, 1.0
    first = 2.0**-s
    variance = (example.d - 1) * example.small * (first - example.small)
    variance += (example.large - low) * (high - example.large)
    assert example.variance == pytest.approx(variance)
    assert example.printed < example.variance
    assert example.variance <= variance_bound(exponential_levels(s), example.d)
    if s < 5:
        assert example.variance <= worst_case_variance(exponential_levels(s), example.d) + 1e-12


def test_where_the_printed_value_fails_and_where_it_holds():
    levels = exponential_levels(2)
    for n, fails in ((31, False), (32, True), (33, True), (34, False), (36, False)):
        assert (worst_case_variance(levels, n) > theorem4_printed(2, n)) == fails
    assert worst_case_variance(exponential_levels(4), 560) > theorem4_printed(4, 560)
    for s in range(2, 12):
        n = math.ceil(2.25 * 4**s)
        relaxed = worst_case_variance(exponential_levels(s), n, relaxed=True)
        assert relaxed <= theorem4_printed(s, n) + 1e-9


@pytest.mark.parametrize("s", [1, 30, 2.0])
def test_counterexamples_exist_from_two_levels_on(s):
    with pytest.raises(ConfigError, match=f"from 2 to 29, got s={s!r}"):
        theorem4_counterexample(s)


def test_arguments_are_checked():
    with pytest.raises(ConfigError, match="d=0"):
        theorem4_printed(2, 0)
    with pytest.raises(ConfigError, match="s=-1"):
        theorem4_printed(-1, 4)
