import pytest
from hypothesis import given
from hypothesis import strategies as st

from slimgrad import theory
from slimgrad.core.errors import ConfigError


def test_exponential_levels_are_powers_of_the_ratio():
    assert theory.exponential_levels(0) == (0.0, 1.0)
    assert theory.exponential_levels(3) == (0.0, 0.125, 0.25, 0.5, 1.0)
    assert theory.exponential_levels(2, ratio=0.25) == (0.0, 0.0625, 0.25, 1.0)


def test_uniform_levels_are_equally_spaced():
    assert theory.uniform_levels(1) == (0.0, 1.0)
    assert theory.uniform_levels(5) == (0.0, 0.2, 0.4, 0.6, 0.8, 1.0)


@given(st.integers(0, 126), st.floats(0.01, 0.99))
def test_every_grid_ascends_from_0_to_1(s, ratio):
    for levels in (theory.exponential_levels(s, ratio), theory.uniform_levels(s + 1)):
        assert levels[0] == 0.0
        assert levels[-1] == 1.0
        assert list(levels) == sorted(set(levels))


@pytest.mark.parametrize("s", [-1, 1.5, True, "2", None])
def test_exponential_levels_refuse_a_bad_s(s):
    with pytest.raises(ConfigError, match=f"s={s!r}"):
        theory.exponential_levels(s)


@pytest.mark.parametrize("ratio", [0.0, 1.0, -0.5, float("nan")])
def test_exponential_levels_refuse_a_bad_ratio(ratio):
    with pytest.raises(ConfigError, match=f"ratio={ratio!r}"):
        theory.exponential_levels(2, ratio)


def test_exponential_levels_refuse_levels_that_vanish():
    with pytest.raises(ConfigError, match="fewer levels"):
        theory.exponential_levels(400, 0.1)


@pytest.mark.parametrize("s", [0, -3, 2.0, False])
def test_uniform_levels_refuse_a_bad_s(s):
    with pytest.raises(ConfigError, match=f"s={s!r}"):
        theory.uniform_levels(s)
