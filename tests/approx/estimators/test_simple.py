"""Zero, Skip and Random: what each returns, costs and refuses."""

from __future__ import annotations

import math

import pytest
import torch

from slimgrad.approx import ESTIMATORS, LayerGeometry, Random, Skip, Zero
from slimgrad.approx.estimators.exact import exact_weight_grad
from slimgrad.core.errors import ConfigError

CONV = LayerGeometry("conv2d", (8, 4, 3, 3), padding=(1, 1))


def test_registry_names_are_the_class_names():
    assert [ESTIMATORS.get(name).__name__.lower() for name in ESTIMATORS] == list(ESTIMATORS)
    assert len(ESTIMATORS) == 16
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
    drawing = {name for name, part in facts.items() if part.needs_key}
    unbiased = {name for name, part in facts.items() if part.unbiased}
    assert drawing - unbiased == {"random"}
    assert unbiased - drawing == {"exact", "exactpositions"}
    assert drawing & unbiased == {
        "blockmeans",
        "patchsampling",
        "rowsampling",
        "samplesampling",
        "stratifiedsampling",
        "walshpairs",
    }
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


def test_matched_noise_has_the_norm_of_the_gradient_and_no_direction():
    generator = torch.Generator().manual_seed(1)
    x, grad_out = (torch.randn(2, n, 5, 5, generator=generator) for n in (4, 8))
    exact = exact_weight_grad(x, grad_out, CONV)
    matched = Random(match_norm=True)
    assert matched.needs_input
    assert not Random().needs_input
    assert matched != Random()
    assert matched.cost(CONV, tuple(grad_out.shape)).saved_macs == 0
    directions = []
    for key in range(400):
        found = matched.weight_grad(x, grad_out, CONV, key)
        torch.testing.assert_close(found.norm(), exact.norm())
        directions.append(float((found * exact).sum() / exact.square().sum()))
    # Cosines of a random direction in n = 288 dimensions: mean 0, sd 1 / sqrt(n); the mean of 400
    # within 6 sd, a false alarm below 1e-8.
    assert abs(sum(directions) / 400) < 6 / math.sqrt(288 * 400)
    assert torch.equal(found, matched.weight_grad(x, grad_out, CONV, 399))
    assert not matched.weight_grad(x, grad_out * 0, CONV, 1).any()
    half = matched.weight_grad(x.bfloat16(), grad_out.bfloat16(), CONV, 399)
    assert half.dtype == torch.bfloat16
    grad_out[0, 0, 0, 0] = float("nan")
    assert bool(matched.weight_grad(x, grad_out, CONV, 1).isnan().any())


def test_matched_noise_takes_no_scale():
    with pytest.raises(ConfigError, match=r"got scale=0.5 beside it; leave scale out"):
        Random(scale=0.5, match_norm=True)
    with pytest.raises(ConfigError, match="match_norm must be True or False, got 1"):
        Random(match_norm=1)


@pytest.mark.parametrize("name", ["random", "topone"])
@pytest.mark.parametrize("scale", [0, -1.0, float("nan"), float("inf"), True, "1"])
def test_bad_scale_is_refused(name, scale):
    with pytest.raises(ConfigError, match=r"scale must be a finite number above 0, got .*Zero\(\)"):
        ESTIMATORS.get(name)(scale=scale)  # pyright: ignore[reportCallIssue]
