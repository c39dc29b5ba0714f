import itertools

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from slimgrad.core.errors import ConfigError
from slimgrad.theory import approximation_pays, best_rates, noise_share, rates_within

LAYERS = st.lists(st.tuples(st.floats(0, 2), st.floats(0.01, 3)), min_size=1, max_size=4).map(
    lambda pairs: tuple(np.array(column) for column in zip(*pairs, strict=True))
)


def time_ratio(rates, v, b, A, theta=1.0):
    return (A + b @ rates) * (1 + theta * (v @ (1 / rates - 1))) / (A + b.sum())


@settings(max_examples=60, deadline=None)
@given(LAYERS, st.floats(0.01, 5), st.sampled_from([1.0, 0.3]), st.integers(0, 2**32 - 1))
def test_no_other_rates_take_less_time(layers, A, theta, seed):
    v, b = layers
    best = best_rates(v, b, A, noise=theta)
    rates = np.asarray(best.rates)
    assert best.time_ratio == pytest.approx(time_ratio(rates, v, b, A, theta))
    assert best.step_seconds == pytest.approx(A + b @ rates)
    assert best.time_ratio <= 1 + 1e-12
    rng = np.random.default_rng(seed)
    rivals = [rng.uniform(0.01, 1, len(v)) for _ in range(100)]
    rivals += [np.clip(rates * np.exp(0.1 * rng.standard_normal(len(v))), 0.01, 1) for _ in "abcde"]
    for rival in rivals:
        assert best.time_ratio <= time_ratio(rival, v, b, A, theta) * (1 + 1e-5)


@given(st.floats(0, 2), st.floats(0.01, 3), st.floats(0.01, 5))
def test_one_layer_pays_exactly_when_the_rule_says_so(v, b, A):
    slightly_less = time_ratio(np.array([1 - 1e-6]), np.array([v]), np.array([b]), A)
    if abs(v - b / (A + b)) > 1e-4:
        assert approximation_pays(v, b, A) == (slightly_less < 1)
        assert approximation_pays(v, b, A) == (best_rates([v], [b], A).time_ratio < 1 - 1e-12)


def test_the_stationary_point():
    v, b, A = np.array([0.05, 0.02]), np.array([0.3, 0.4]), 0.5
    best = best_rates(v, b, A)
    rates = np.asarray(best.rates)
    price = best.step_seconds / (1 + best.added_variance)
    assert rates == pytest.approx(np.sqrt(price * v / b), rel=1e-4)


def test_layers_that_do_not_pay_stay_exact():
    best = best_rates([5.0, 0.01], [0.1, 0.1], 1.0)
    assert best.rates[0] == pytest.approx(1.0)
    assert best.rates[1] < 0.5
    none = best_rates([5.0, 5.0], [0.1, 0.1], 1.0)
    assert none.rates == (1.0, 1.0)
    assert none.time_ratio == 1.0


def test_layers_that_add_nothing_go_to_the_limit():
    assert best_rates([0.0], [1.0], 1.0, least_rate=0.1).rates == (0.1,)
    assert best_rates([1.0], [1.0], 1.0, noise=0.0).rates == pytest.approx((0.01,))
    assert rates_within([0.0], [1.0], 1.0, 0.0).rates == (0.01,)


@settings(max_examples=60, deadline=None)
@given(LAYERS, st.floats(0, 3), st.integers(0, 2**32 - 1))
def test_rates_within_a_budget_are_the_fastest(layers, allowed, seed):
    v, b = layers
    best = rates_within(v, b, 1.0, allowed)
    assert best.added_variance <= allowed + 1e-9
    rng = np.random.default_rng(seed)
    for _ in range(100):
        rival = rng.uniform(0.01, 1, len(v))
        if v @ (1 / rival - 1) <= allowed:
            assert best.step_seconds <= 1 + b @ rival + 1e-6


def test_a_budget_of_nothing_is_exact_training():
    best = rates_within([0.1, 0.2], [1.0, 2.0], 1.0, 0.0)
    assert best.rates == (1.0, 1.0)
    assert best.time_ratio == 1.0


def test_noise_share():
    assert noise_share(128, 0) == 0
    assert noise_share(100, 300) == 0.75
    assert not approximation_pays(0.5, 0.1, 0.9)
    assert approximation_pays(0.5, 0.1, 0.9, noise=0.1)


def test_arguments_are_checked():
    for call in (best_rates, lambda v, b, a: rates_within(v, b, a, 1.0)):
        with pytest.raises(ConfigError, match="as many layer_seconds"):
            call([0.1], [1.0, 1.0], 1.0)
        for v, b in itertools.product([[-0.1], [0.1]], [[0.0], [1.0]]):
            if (v, b) != ([0.1], [1.0]):
                with pytest.raises(ConfigError, match="layer_seconds > 0"):
                    call(v, b, 1.0)
        with pytest.raises(ConfigError, match="other_seconds=0"):
            call([0.1], [1.0], 0)
    with pytest.raises(ConfigError, match="allowed_variance=-1"):
        rates_within([0.1], [1.0], 1.0, -1)
    with pytest.raises(ConfigError, match="least_rate=0"):
        best_rates([0.1], [1.0], 1.0, least_rate=0)
    with pytest.raises(ConfigError, match="noise=2"):
        best_rates([0.1], [1.0], 1.0, noise=2)
    with pytest.raises(ConfigError, match="batch_size=0"):
        noise_share(0, 1)
    with pytest.raises(ConfigError, match="added_variance=nan"):
        approximation_pays(float("nan"), 1.0, 1.0)
