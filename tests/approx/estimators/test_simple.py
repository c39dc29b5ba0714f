"""Zero, Skip and Random: what each returns, costs and refuses."""

from __future__ import annotations

import math

import pytest
import torch

from slimgrad.approx import ESTIMATORS, LayerGeometry, Random, Skip, Zero
from slimgrad.core.errors import ConfigError

CONV = LayerGeometry("conv2d", (8, 4, 3, 3), padding=(1, 1))


def test_registry_names_are_the_class_names():
    assert list(ESTIMATORS) == [
        "exact",
        "exactpositions",
        "random",
        "rowsampling",
        "skip",
        "topone",
        "zero",
    ]
    assert all(ESTIMATORS.get(name).name == name for name in ESTIMATORS)
    with pytest.raises(ConfigError, match="did you mean 'topone'"):
        ESTIMATORS.get("top_one")


@pytest.mark.parametrize("estimator", [Zero(), Skip()])
def test_zero_and_skip_are_zero_and_free(estimator):
    grad_out = torch.ones(2, 8, 5, 5, dtype=torch.float64)
    estimate = estimator.weight_grad(None, grad_out, CONV, 0)
    assert estimate.shape == CONV.weight_shape
    assert estimate.dtype == torch.float64
    assert not estimate.any()
    cost = estimator.cost(CONV, tuple(grad_out.shape))
    assert (cost.macs, cost.saved_macs) == (0, 2 * 25 * 8 * 36)


def test_which_leave_no_gradient_and_which_draw():
    facts = {name: ESTIMATORS.get(name) for name in ESTIMATORS}
    assert [name for name, part in facts.items() if not part.needs_gradient] == ["skip"]
    assert [name for name, part in facts.items() if part.needs_key] == ["random", "rowsampling"]
    unbiased = [name for name, part in facts.items() if part.unbiased]
    assert unbiased == ["exact", "exactpositions", "rowsampling"]
    assert [name for name, part in facts.items() if not part.needs_input] == [
        "random",
        "skip",
        "zero",
    ]


def test_random_is_normal_of_its_scale():
    # n draws. Mean: sd scale / sqrt(n). Mean square / scale^2: sd sqrt(2 / n). Fourth moment of
    # N(0, 1), 3: sd sqrt(96 / n). Bounds of 6 sd each: false alarms below 1e-8 in all.
    geometry = LayerGeometry("linear", (400, 500))
    n = 400 * 500
    noise = Random(scale=0.25).weight_grad(None, torch.ones(1, 400), geometry, key=11) / 0.25
    assert abs(float(noise.mean())) < 6 / math.sqrt(n)
    assert abs(float(noise.square().mean()) - 1) < 6 * math.sqrt(2 / n)
    assert abs(float(noise.double().pow(4).mean()) - 3) < 6 * math.sqrt(96 / n)


def test_random_default_scale_is_the_papers_and_key_decides():
    assert Random().scale == 1 / 128
    grad_out = torch.ones(1, 8, 5, 5)
    first = Random().weight_grad(None, grad_out, CONV, key=1)
    assert torch.equal(first, Random().weight_grad(None, grad_out * 3, CONV, key=1))
    assert not torch.equal(first, Random().weight_grad(None, grad_out, CONV, key=2))
    assert Random().cost(CONV, (1, 8, 5, 5)).macs == 0


def test_random_leaves_the_global_generator_alone():
    torch.manual_seed(3)
    before = torch.get_rng_state()
    Random().weight_grad(None, torch.ones(1, 8, 5, 5), CONV, key=1)
    assert torch.equal(before, torch.get_rng_state())


@pytest.mark.parametrize("name", ["random", "topone"])
@pytest.mark.parametrize("scale", [0, -1.0, float("nan"), float("inf"), True, "1"])
def test_bad_scale_is_refused(name, scale):
    with pytest.raises(ConfigError, match=r"scale must be a finite number above 0, got .*Zero\(\)"):
        ESTIMATORS.get(name)(scale=scale)  # pyright: ignore[reportCallIssue]
