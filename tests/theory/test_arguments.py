import math

import numpy as np
import pytest

from slimgrad.core.errors import ConfigError
from slimgrad.theory import arguments


@pytest.mark.parametrize("value", [0, 9, 2.0, True, "3", None, math.nan])
def test_integers_outside_the_range_are_refused(value):
    with pytest.raises(ConfigError, match=f"from 1 to 8, got n={value!r}"):
        arguments.checked_integer("n", value, 1, 8)


def test_numpy_integers_are_integers():
    assert arguments.checked_integer("n", np.int64(3)) == 3


def test_a_length_that_no_vector_has_is_refused():
    with pytest.raises(ConfigError, match=r">= 0 and <= 1e\+18"):
        arguments.checked_integer("n", 10**400)


@pytest.mark.parametrize("value", [math.nan, math.inf, -1, 1, "0.5", None, True])
def test_numbers_outside_the_interval_are_refused(value):
    with pytest.raises(ConfigError, match="with 0 <= p < 1, got p="):
        arguments.checked_number("p", value, 0, 1, open_high=True)


def test_numbers_without_limits_must_be_finite():
    with pytest.raises(ConfigError, match="must be a finite number, got x=nan"):
        arguments.checked_number("x", math.nan)
    with pytest.raises(ConfigError, match="with 0 < x, got x=0"):
        arguments.checked_number("x", 0, 0, open_low=True)


@pytest.mark.parametrize("levels", [(), (0.0, math.nan, 1.0), (0.0, 1.0, math.inf), "ab", None])
def test_grids_that_are_no_grids_are_refused(levels):
    with pytest.raises(ConfigError, match="levels must ascend strictly from 0 to 1"):
        arguments.checked_grid(levels)


@pytest.mark.parametrize(
    ("values", "message"),
    [
        ([], "at least one entry"),
        ([[1.0]], "1 dimension"),
        (["a"], "array of numbers"),
        ([1.0, math.nan], "must be finite, got nan"),
    ],
)
def test_arrays_that_cannot_be_used_are_refused(values, message):
    with pytest.raises(ConfigError, match=message):
        arguments.checked_array("v", values)


@pytest.mark.parametrize("weights", [[-1.0, 2.0], [0.0, 0.0], [1e308, 1e308]])
def test_weights_need_a_positive_finite_sum(weights):
    with pytest.raises(ConfigError, match="positive, finite sum"):
        arguments.checked_weights("w", weights)
