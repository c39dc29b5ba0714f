from __future__ import annotations

import math
from functools import partial

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from slimgrad.core.errors import ConfigError
from slimgrad.theory import exponential_levels, rates, variance_bound
from slimgrad.theory.rates import QuantizedGradients
from slimgrad.theory.rates.search import balanced_step, fewest_steps, searched_step

NOISE = QuantizedGradients(
    0.25,
    world_size=4,
    second_moment=5.0,
    variance=1.0,
    gradient_norm=2.0,
    bits_per_message=1000.0,
)
SMOOTH = {"smoothness": 2.0, "start_gap": 3.0}
MOMENTUM = {"momentum": 0.9, "s": 1}
CALCULATORS = {
    "convex": partial(rates.convex_rate, smoothness=2.0, distance=3.0),
    "convex relative": partial(rates.convex_rate, smoothness=2.0, distance=3.0, noise="relative"),
    "nonconvex": partial(rates.nonconvex_rate, **SMOOTH),
    "relative": partial(rates.nonconvex_rate, noise="relative", **SMOOTH),
    "momentum convex": partial(rates.momentum_convex_rate, distance=3.0, start_gap=3.0, **MOMENTUM),
    "momentum": partial(rates.momentum_nonconvex_rate, **SMOOTH, **MOMENTUM),
    "asynchronous": partial(rates.asynchronous_rate, batch=4, delay=2, **SMOOTH),
    "decentralised": lambda target, noise: rates.decentralised_rate(
        target, noise, rates.mixing_weights("ring", 4), condition="contraction", **SMOOTH
    ),
}
every_calculator = pytest.mark.parametrize("name", CALCULATORS)


def test_the_variance_of_averaged_messages_is_the_smaller_of_two_bounds():
    assert NOISE.message_variance_bound == 1.25 * 1.0 + 0.25 * 4.0
    assert NOISE.averaged_variance_bound == 2.25 / 4
    by_moment = QuantizedGradients(0.5, 4, second_moment=2.0, variance=1.0, gradient_norm=2.0)
    assert by_moment.averaged_variance_bound == 3.0 / 4
    assert QuantizedGradients(0.5, variance=1.0).averaged_variance_bound is None


def test_convex_steps_by_hand():
    # With R = beta = 1, s^2 = 4 the bound is 2 / sqrt(T) + 1 / (2 T): 0.205 at 100.
    noise = QuantizedGradients(3.0, second_moment=1.0)
    answer = rates.convex_rate(0.2050001, noise, smoothness=1.0, distance=1.0)
    assert (answer.steps, answer.bits) == (100, None)
    assert answer.step_size == pytest.approx(1 / (1 + 2 * 10))


@settings(max_examples=200, deadline=None)
@given(*(st.floats(0.01, 100) for _ in range(4)), st.floats(0, 10), st.integers(1, 64))
def test_convex_steps_are_fewest_and_within_the_simple_formula(target, beta, radius, b, eps, ranks):
    noise = QuantizedGradients(eps, world_size=ranks, second_moment=b)
    steps = rates.convex_rate(target, noise, smoothness=beta, distance=radius).steps
    variance = (1 + eps) * b / ranks
    given = {"smoothness": beta, "distance": radius, "variance": variance}
    assert rates.convex_gap_bound(steps, **given) <= target
    assert steps == 1 or rates.convex_gap_bound(steps - 1, **given) > target
    simple = max(4 * radius**2 * variance / target**2, beta * radius**2 / target)
    assert steps <= math.ceil(simple * (1 + 1e-9))


@settings(max_examples=200, deadline=None)
@given(*(st.floats(0.01, 100) for _ in range(4)), st.floats(0, 10), st.integers(1, 64))
def test_nonconvex_steps_are_within_the_simple_formula(target, beta, gap, b, eps, ranks):
    noise = QuantizedGradients(eps, world_size=ranks, second_moment=b)
    answer = rates.nonconvex_rate(target, noise, smoothness=beta, start_gap=gap)
    variance = (1 + eps) * b / ranks
    assert answer.step_size <= 1 / beta
    bound = rates.nonconvex_gradient_bound(
        answer.steps, answer.step_size, start_gap=gap, growth=beta * variance
    )
    assert bound <= target * (1 + 1e-12)

    def simple(steps):
        return 4 * beta * gap / steps + 2 * math.sqrt(2 * beta * gap * variance / steps)

    assert answer.steps == 1 or answer.steps <= fewest_steps(simple, target)


def test_the_relative_convex_form_by_hand():
    given = {"smoothness": 2.0, "distance": 3.0, "variance": 1.0}
    bound = partial(
        rates.convex_relative_gap_bound, 100, relative_variance=0.4, world_size=4, **given
    )
    assert bound(0.1) == pytest.approx((9 / 10 + 0.1 * 1.4 / 4) / (2 * (1 - 0.2 * 1.1)))
    assert bound(0.5) == math.inf


def test_the_relative_form_by_hand():
    # beta (1 + eps) s^2 / W = 2 * 1.25 / 4; the step at most 1 / (2 (1 + 0.25 / 4)).
    assert rates.nonconvex_terms(NOISE, 2.0, "relative") == (1 / 2.125, 0.625)
    assert rates.nonconvex_terms(NOISE, 2.0, "bounded") == (0.5, 2 * 2.25 / 4)


def test_convex_momentum_by_hand():
    # Its three terms: start, travel, noise.
    given = {"momentum": 0.5, "distance": 3.0, "start_gap": 2.0, "gradient_norm": 2.0}
    for s, power in ((0, 1.0), (1, 2.0), (2, 3.0)):
        bound = rates.momentum_convex_gap_bound(100, 0.1, s=s, variance=1.0, **given)
        assert bound == pytest.approx(2 / 100 + 4.5 / 0.2 / 10 + 0.1 * power * 5 / 10)


def test_nonconvex_momentum_without_momentum_is_plain_sgd():
    growth = rates.momentum_growth(
        momentum=0.0, s=0, smoothness=2.0, gradient_norm=9.0, variance=0.7
    )
    assert growth == pytest.approx(2.0 * 0.7)
    # s = 1 / (1 - mu) is SGD with a step 1 / (1 - mu) as long: the memory term vanishes.
    growth = rates.momentum_growth(
        momentum=0.9, s=10, smoothness=2.0, gradient_norm=9.0, variance=0.7
    )
    assert growth == pytest.approx(2.0 * 0.7 / 0.1)


def test_nonconvex_momentum_as_printed():
    # 2 D (1 - mu) / N max(2 beta / (1 - mu), sqrt N / C) + C / sqrt N [...] / (1 - mu)^3
    beta, gap, mu, norm, variance, scale, n = 2.0, 3.0, 0.8, 1.5, 0.5, 0.4, 10_000
    for s in (0, 1):
        inner = beta * mu**2 * ((1 - mu) * s - 1) ** 2 * (norm**2 + variance)
        inner += beta * variance * (1 - mu) ** 2
        printed = 2 * gap * (1 - mu) / n * max(2 * beta / (1 - mu), math.sqrt(n) / scale)
        printed += scale / math.sqrt(n) * inner / (1 - mu) ** 3
        step = min((1 - mu) / (2 * beta), scale / math.sqrt(n))
        growth = rates.momentum_growth(
            momentum=mu, s=s, smoothness=beta, gradient_norm=norm, variance=variance
        )
        ours = rates.nonconvex_gradient_bound(n, step, start_gap=(1 - mu) * gap, growth=growth)
        assert ours == pytest.approx(printed)


def test_asynchronous_steps_by_hand():
    noise = QuantizedGradients(1.0, world_size=8, second_moment=2.0)  # s^2 = 4, not 4 / 8
    given = {"smoothness": 1.0, "start_gap": 9.0, "batch": 4}
    far = rates.asynchronous_rate(0.1, noise, delay=1, **given)
    assert far.steps == math.ceil(16 * 9 * 4 / (4 * 0.1**2))
    assert far.step_size == pytest.approx(math.sqrt(9 / (4 * far.steps * 4)))
    slow = rates.asynchronous_rate(10.0, noise, delay=99, **given)
    assert slow.steps == 4 * 4 * 9 * 100**2 / 4


@given(st.floats(0.01, 10), st.floats(0.01, 10), st.floats(0.1, 10), st.integers(0, 50))
@settings(max_examples=100, deadline=None)
def test_the_asynchronous_answer_follows_from_its_general_bound(target, gap, b, delay):
    noise = QuantizedGradients(0.3, second_moment=b)
    given = {"smoothness": 1.5, "start_gap": gap, "batch": 3, "delay": delay}
    answer = rates.asynchronous_rate(target, noise, **given)
    bound = rates.asynchronous_gradient_bound(
        answer.steps, answer.step_size, variance=1.3 * b, **given
    )
    assert bound <= target * (1 + 1e-9)


@every_calculator
def test_answers_hold_together(name):
    coarse, fine = (CALCULATORS[name](target, NOISE) for target in (0.5, 0.05))
    for answer in (coarse, fine):
        assert answer.met
        assert answer.reason == ""
        assert answer.assumptions
        assert answer.bits == answer.steps * answer.messages_per_step * 1000.0
    assert coarse.steps < fine.steps
    assert coarse.step_size >= fine.step_size
    expected = 8 if name == "decentralised" else 4
    assert coarse.messages_per_step == expected


@every_calculator
def test_more_variance_never_needs_fewer_steps(name):
    steps = []
    for eps in (0.0, 0.2, 0.45):
        noise = QuantizedGradients(
            eps, world_size=4, second_moment=5.0, variance=1.0, gradient_norm=2.0
        )
        steps.append(CALCULATORS[name](0.05, noise).steps)
    assert steps == sorted(steps)
    assert steps[0] < steps[-1]


@every_calculator
def test_without_a_bound_on_the_noise_there_is_no_number(name):
    answer = CALCULATORS[name](0.1, QuantizedGradients(0.1, world_size=4, gradient_norm=1.0))
    assert not answer.met
    assert (answer.steps, answer.step_size, answer.bits) == (None, None, None)
    assert "no bound on the variance" in answer.reason


@pytest.mark.parametrize("name", ["momentum convex", "momentum"])
def test_momentum_needs_a_bound_on_the_gradient(name):
    answer = CALCULATORS[name](0.1, QuantizedGradients(0.1, second_moment=1.0))
    assert (answer.met, answer.steps) == (False, None)
    assert "give gradient_norm" in answer.reason


@every_calculator
def test_a_target_out_of_reach_is_said(name):
    answer = CALCULATORS[name](1e-29, NOISE)
    assert (answer.met, answer.steps) == (False, None)
    assert "within 10**18 steps" in answer.reason


def test_no_noise_at_all():
    silent = QuantizedGradients(0.0, variance=0.0, gradient_norm=0.0)
    answer = rates.asynchronous_rate(0.1, silent, batch=1, delay=0, **SMOOTH)
    assert "variance above 0" in answer.reason
    answer = CALCULATORS["momentum convex"](0.1, silent)
    assert "a minimum already" in answer.reason
    assert rates.nonconvex_rate(0.1, silent, **SMOOTH).steps == 2 * 3 * 2 / 0.1


@every_calculator
@pytest.mark.parametrize("target", [0, -1.0, math.nan, math.inf, 1e31, "1", None, True, 10**400])
def test_a_bad_target_is_named(name, target):
    with pytest.raises(ConfigError, match="target must be a number with 1e-30 <= target"):
        CALCULATORS[name](target, NOISE)


@pytest.mark.parametrize(
    ("setting", "value"),
    [
        ("relative_variance", -0.1),
        ("relative_variance", math.nan),
        ("world_size", 0),
        ("world_size", 2.0),
        ("world_size", 10**19),
        ("second_moment", 0.0),
        ("variance", -1.0),
        ("gradient_norm", math.inf),
        ("bits_per_message", -1),
    ],
)
def test_bad_noise_is_named(setting, value):
    with pytest.raises(ConfigError, match=f"{setting}="):
        QuantizedGradients(**{"relative_variance": 0.1, setting: value})


@pytest.mark.parametrize(
    ("call", "fact"),
    [
        (lambda: rates.convex_rate(1.0, NOISE, smoothness=0, distance=1.0), "smoothness=0"),
        (lambda: rates.convex_gap_bound(0, smoothness=1, distance=1, variance=1), "steps=0"),
        (lambda: rates.nonconvex_gradient_bound(1, -1.0, start_gap=1, growth=1), "step_size=-1.0"),
        (lambda: rates.nonconvex_rate(1.0, NOISE, noise="bound", **SMOOTH), "mean 'bounded'"),
        (
            lambda: rates.momentum_nonconvex_rate(1.0, NOISE, momentum=1.0, s=0, **SMOOTH),
            "momentum=1.0",
        ),
        (
            lambda: rates.momentum_nonconvex_rate(1.0, NOISE, momentum=0.5, s=3, **SMOOTH),
            r"s must be at most 1 / \(1 - momentum\) = 2, got s=3",
        ),
        (
            lambda: rates.asynchronous_rate(1.0, NOISE, batch=1, delay=-1, **SMOOTH),
            "delay must be an integer >= 0",
        ),
        (
            lambda: rates.asynchronous_gradient_bound(
                10, 0.5, batch=4, delay=5, variance=1.0, **SMOOTH
            ),
            "step_size=0.5 is too long for delay=5",
        ),
        (
            lambda: rates.decentralised_rate(
                1.0, NOISE, rates.mixing_weights("ring", 4), condition="tight", **SMOOTH
            ),
            "unknown condition 'tight'",
        ),
        (
            lambda: rates.decentralised_rate(1.0, NOISE, rates.mixing_weights("ring", 3), **SMOOTH),
            "for 3 ranks, but world_size is 4",
        ),
    ],
)
def test_bad_settings_are_named(call, fact):
    with pytest.raises(ConfigError, match=fact):
        call()


def test_the_published_condition_fails_on_a_ring_of_four_for_every_grid_of_ratio_one_half():
    # eps cannot be below 1/8 then: kappa alone is 1/8.
    ring = rates.mixing_weights("ring", 4)
    for s in (2, 6, 14):
        eps = variance_bound(exponential_levels(s), 512)
        answer = rates.decentralised_rate(
            0.1, QuantizedGradients(eps, world_size=4, variance=1.0), ring, **SMOOTH
        )
        assert (answer.met, answer.steps) == (False, None)
        assert "= 0.0625" in answer.reason
    finer = variance_bound(exponential_levels(20, ratio=0.7), 512)
    noise = QuantizedGradients(finer, world_size=4, variance=1.0)
    assert rates.decentralised_rate(0.1, noise, ring, **SMOOTH).met


def test_known_limits_of_rings():
    four, eight = (rates.dcd_condition(rates.mixing_weights("ring", n), 1 / 8) for n in (4, 8))
    assert math.sqrt(four.printed_limit) == pytest.approx(0.25)
    assert math.sqrt(eight.printed_limit) == pytest.approx(0.073, abs=5e-4)
    assert not four.printed_met
    assert not eight.printed_met


@given(st.floats(0, 3), st.sampled_from(["ring", "star", "complete"]), st.integers(1, 20))
def test_the_published_condition_implies_the_contraction(eps, topology, ranks):
    found = rates.dcd_condition(rates.mixing_weights(topology, ranks), eps)
    assert found.contraction_met or not found.printed_met
    assert found.printed_limit <= found.contraction_limit


def test_ranks_without_links_are_never_answered():
    for condition in ("printed", "contraction"):
        noise = QuantizedGradients(0.0, world_size=2, variance=1.0)
        answer = rates.decentralised_rate(0.1, noise, np.eye(2), condition=condition, **SMOOTH)
        assert not answer.met
        assert "not connected" in answer.reason
    bipartite = rates.dcd_condition([[0, 1], [1, 0]], 0.0)
    assert (bipartite.rho, bipartite.contraction_met) == (1.0, False)


def test_one_rank_meets_every_condition():
    found = rates.dcd_condition([[1.0]], 100.0)
    assert (found.rho, found.mu, found.printed_met) == (0.0, 0.0, True)


def test_the_decentralised_bound_is_infinite_where_it_is_not_proved():
    given = {"world_size": 4, "smoothness": 1.0, "start_gap": 1.0, "variance": 1.0}
    bound = partial(rates.decentralised_gradient_bound, 100, **given)
    ring = rates.spectrum(rates.mixing_weights("ring", 4))
    assert bound(1.5, mixing=rates.Spectrum(0.0, 0.0), relative_variance=0.0) == math.inf
    assert bound(0.01, mixing=ring, relative_variance=0.6) == math.inf
    assert bound(0.5, mixing=ring, relative_variance=0.1) == math.inf
    # One rank alone escapes the limit on disagreement, not the one on quantization noise.
    alone = partial(bound, mixing=rates.Spectrum(0.0, 0.0), relative_variance=3.0, world_size=1)
    assert alone(0.17) == math.inf
    assert alone(0.01) < math.inf


def test_searches():
    assert fewest_steps(lambda steps: 0.0, 1.0) == 1
    assert fewest_steps(lambda steps: 1e18 / steps, 1.0) > 9.99e17
    assert fewest_steps(lambda steps: 1.1e18 / steps, 1.0) is None
    assert fewest_steps(lambda steps: math.nan, 1.0) is None
    assert balanced_step(1.0, 4.0, largest=0.1) == 0.1
    assert searched_step(lambda a: math.inf if a > 1 else 1 / a, 50.0) == pytest.approx(1.0)
