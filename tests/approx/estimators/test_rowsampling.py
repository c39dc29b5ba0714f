from __future__ import annotations

import itertools

import pytest
import torch
from estimator_cases import GEOMETRIES, over_grid, tensors

from slimgrad.approx import LayerGeometry, RowSampling
from slimgrad.approx.estimators import rowsampling
from slimgrad.approx.estimators.exact import exact_weight_grad
from slimgrad.core.errors import ConfigError

SETTINGS = [
    {"score": score, "means": means}
    for score, means in itertools.product(
        ("gradient", "gradient_patch"), ("none", "batch", "sample")
    )
]


@pytest.mark.parametrize("geometry", GEOMETRIES, ids=str)
@pytest.mark.parametrize("settings", SETTINGS, ids=str)
def test_the_mean_over_all_draws_is_the_exact_gradient(geometry, settings, monkeypatch):
    """The start is the only random number; its mean is taken over an even grid."""
    x, grad_out = tensors(geometry)
    exact = exact_weight_grad(x.double(), grad_out.double(), geometry)
    estimator = RowSampling(keep=0.3, **settings)
    mean = over_grid(monkeypatch, rowsampling, estimator, x, grad_out, geometry, 512).mean(0)
    one = estimator.weight_grad(x, grad_out, geometry, 3)
    scale = float(exact.abs().max())
    assert float((mean - exact).abs().max()) < 0.02 * scale
    assert float((one - exact).abs().max()) > 0.02 * scale


@pytest.mark.parametrize("layout", [torch.contiguous_format, torch.channels_last])
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64, torch.bfloat16])
@pytest.mark.parametrize("settings", SETTINGS, ids=str)
def test_keeping_everything_is_exact(settings, dtype, layout):
    geometry = GEOMETRIES[0]
    x, grad_out = (t.contiguous(memory_format=layout) for t in tensors(geometry, dtype))
    found = RowSampling(keep=1.0, **settings).weight_grad(x, grad_out, geometry, 0)
    exact = exact_weight_grad(x.double(), grad_out.double(), geometry)
    assert found.dtype == dtype
    assert found.shape == geometry.weight_shape
    # A threshold within a percent of the wanted size leaves few positions to chance.
    limit = {torch.float32: 0.05, torch.float64: 0.05, torch.bfloat16: 0.06}[dtype]
    error = float((found.double() - exact).norm() / exact.norm())
    assert error < limit


def test_means_lower_the_variance():
    geometry = LayerGeometry("conv2d", (6, 4, 3, 3))
    x, grad_out = tensors(geometry)
    x = x + 3  # patches with much in common
    exact = exact_weight_grad(x, grad_out, geometry)
    errors = {}
    for means in ("none", "batch", "sample"):
        estimator = RowSampling(keep=0.25, means=means)
        squares = [
            float((estimator.weight_grad(x, grad_out, geometry, key) - exact).square().sum())
            for key in range(200)
        ]
        errors[means] = sum(squares) / len(squares)
    assert errors["batch"] < errors["none"] / 4
    assert errors["sample"] < errors["none"] / 4


def test_rows_of_a_batch_are_the_positions_of_a_plain_linear_layer():
    geometry = LayerGeometry("linear", (6, 4))
    generator = torch.Generator().manual_seed(2)
    x, grad_out = (torch.randn(64, n, generator=generator) for n in (4, 6))
    grad_out[8:] = 0
    found = RowSampling(keep=0.25).weight_grad(x, grad_out, geometry, 0)
    # Rows without gradient are never drawn, so 16 wanted rows hold all 8 that matter.
    torch.testing.assert_close(found, exact_weight_grad(x, grad_out, geometry))


def test_nothing_to_draw_from_gives_zero():
    geometry = GEOMETRIES[0]
    x, grad_out = tensors(geometry)
    for settings in SETTINGS:
        estimator = RowSampling(keep=0.5, **settings)
        assert not estimator.weight_grad(x, grad_out * 0, geometry, 0).any()
        empty = estimator.weight_grad(x[:0], grad_out[:0], geometry, 0)
        assert empty.shape == geometry.weight_shape
        assert not empty.any()


def test_a_value_that_is_not_finite_stays_visible():
    geometry = GEOMETRIES[0]
    x, grad_out = tensors(geometry)
    grad_out[1, 2, 3, 3] = float("nan")
    for settings in SETTINGS:
        found = RowSampling(keep=0.1, **settings).weight_grad(x, grad_out, geometry, 0)
        assert bool(found[2].isnan().any())


def test_keys_name_the_draw():
    geometry = GEOMETRIES[0]
    x, grad_out = tensors(geometry)
    estimates = [RowSampling().weight_grad(x, grad_out, geometry, key) for key in (1, 1, 2)]
    assert torch.equal(estimates[0], estimates[1])
    assert not torch.equal(estimates[0], estimates[2])


def test_costs():
    geometry = LayerGeometry("conv2d", (8, 4, 3, 3))
    shape = (16, 8, 10, 10)
    exact = geometry.weight_grad_macs(shape)
    for means, beside in (("none", 0), ("batch", 1), ("sample", 16)):
        cost = RowSampling(keep=0.25, means=means).cost(geometry, shape)
        assert cost.exact_macs == exact
        assert cost.macs == exact // 4 + beside * 8 * 36
    linear = RowSampling(keep=0.5, means="sample").cost(LayerGeometry("linear", (6, 4)), (8, 6))
    assert linear.macs == 8 * 24 // 2 + 24


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"keep": 0}, "RowSampling: keep must be above 0 and at most 1, got 0"),
        ({"keep": 1.5}, "at most 1, got 1.5"),
        ({"keep": True}, "at most 1, got True"),
        ({"score": "gradients"}, "unknown score of RowSampling 'gradients': did you mean"),
        ({"means": "samples"}, "unknown means of RowSampling 'samples': did you mean 'sample'"),
    ],
)
def test_wrong_settings_are_refused(settings, message):
    with pytest.raises(ConfigError, match=message):
        RowSampling(**settings)
