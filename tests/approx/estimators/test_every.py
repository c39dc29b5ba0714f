"""What every sampling, blocking or thinning estimator owes, one row of settings each."""

from __future__ import annotations

import pytest
import torch
from estimator_cases import GEOMETRIES, over_grid, tensors
from torch import nn

from slimgrad.approx import (
    BlockMeans,
    ChannelTopK,
    LayerGeometry,
    MeProp,
    PatchSampling,
    PooledMeans,
    Random,
    SampleSampling,
    StratifiedSampling,
    TopK,
    WalshPairs,
    approximate,
)
from slimgrad.approx.estimators import (
    blockmeans,
    patchsampling,
    samplesampling,
    stratifiedsampling,
)
from slimgrad.approx.estimators.exact import exact_weight_grad
from slimgrad.core.errors import ConfigError

UNIFORM = [
    StratifiedSampling(0.3),
    StratifiedSampling(0.3, common_phase=True),
    SampleSampling(0.5, score="uniform"),
]
DRAWN = [
    *UNIFORM,
    StratifiedSampling(0.3, means="batch"),
    StratifiedSampling(0.3, means="sample"),
    SampleSampling(0.5),
    PatchSampling(),
    PatchSampling(2, score="gradient_patch", keep_top=True),
    PatchSampling(4),
    BlockMeans(0.2),
    BlockMeans(0.2, block=3),
]
MODULES = {
    StratifiedSampling: stratifiedsampling,
    SampleSampling: samplesampling,
    PatchSampling: patchsampling,
    BlockMeans: blockmeans,
}
WALSH = [WalshPairs(), WalshPairs(odds="even")]
BIASED = [TopK(1), TopK(5), PooledMeans(), PooledMeans(3), MeProp(0.2), ChannelTopK(0.4)]
EVERY = [*DRAWN, *WALSH, *BIASED]
EXACT = [
    StratifiedSampling(1),
    StratifiedSampling(1.0, means="sample"),
    SampleSampling(1.0),
    BlockMeans(1.0),
    TopK(100),
    MeProp(1.0),
    ChannelTopK(1.0),
]


@pytest.mark.parametrize("geometry", [*GEOMETRIES, "rows of a batch"], ids=str)
@pytest.mark.parametrize("estimator", DRAWN, ids=str)
def test_the_mean_over_all_draws_is_the_exact_gradient(estimator, geometry, monkeypatch):
    """All draws are set to one number, which runs over an even grid: sums keep their mean."""
    plain = geometry == "rows of a batch"
    geometry = GEOMETRIES[-1] if plain else geometry
    x, grad_out = tensors(geometry)
    if plain:
        x, grad_out = x.flatten(0, 1), grad_out.flatten(0, 1)
    exact = exact_weight_grad(x.double(), grad_out.double(), geometry)
    module = MODULES[type(estimator)]
    # On a grid the share of each of the up to 80 places of a map is off by at most 1 / count.
    count = 960 if module is patchsampling else 160
    found = over_grid(monkeypatch, module, estimator, x, grad_out, geometry, count)
    scale = float(exact.abs().max())
    assert float((found.mean(0) - exact).abs().max()) < 0.02 * scale
    assert float((found - exact).abs().max()) > 0.05 * scale


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64, torch.bfloat16])
@pytest.mark.parametrize("geometry", GEOMETRIES, ids=str)
@pytest.mark.parametrize("estimator", EXACT, ids=str)
def test_keeping_everything_is_exact(estimator, geometry, dtype):
    x, grad_out = tensors(geometry, dtype)
    found = estimator.weight_grad(x, grad_out, geometry, 0)
    exact = exact_weight_grad(x.double(), grad_out.double(), geometry)
    assert found.dtype == dtype
    limit = {torch.float32: 1e-5, torch.float64: 1e-12, torch.bfloat16: 0.01}[dtype]
    assert float((found.double() - exact).norm() / exact.norm()) < limit


@pytest.mark.parametrize("layout", [torch.contiguous_format, torch.channels_last])
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64, torch.bfloat16])
@pytest.mark.parametrize("estimator", EVERY, ids=str)
def test_dtypes_and_layouts_agree(estimator, dtype, layout):
    geometry = GEOMETRIES[0]
    rounded = [t.bfloat16() for t in tensors(geometry)]
    expected = estimator.weight_grad(*(t.double() for t in rounded), geometry, 3)
    x, grad_out = (t.to(dtype).contiguous(memory_format=layout) for t in rounded)
    before = x.clone(), grad_out.clone()
    found = estimator.weight_grad(x, grad_out, geometry, 3)
    assert found.dtype == dtype
    assert found.shape == geometry.weight_shape
    limit = {torch.float32: 1e-5, torch.float64: 1e-12, torch.bfloat16: 0.01}[dtype]
    assert float((found.double() - expected).norm() / expected.norm()) < limit
    assert torch.equal(x, before[0])
    assert torch.equal(grad_out, before[1])


@pytest.mark.parametrize("geometry", [GEOMETRIES[3], GEOMETRIES[4]], ids=str)
@pytest.mark.parametrize("estimator", EVERY, ids=str)
def test_strides_do_not_matter(estimator, geometry):
    x, grad_out = tensors(geometry)
    spread = [torch.stack([t, t + 1], -1)[..., 0] for t in (x, grad_out)]
    assert not spread[0].is_contiguous()
    expected = estimator.weight_grad(x, grad_out, geometry, 2)
    torch.testing.assert_close(estimator.weight_grad(*spread, geometry, 2), expected)


@pytest.mark.parametrize("geometry", [GEOMETRIES[0], GEOMETRIES[4]], ids=str)
@pytest.mark.parametrize("estimator", [*EVERY, *EXACT], ids=str)
def test_no_sample_and_no_gradient_give_zero(estimator, geometry):
    x, grad_out = tensors(geometry)
    assert not estimator.weight_grad(x, grad_out * 0, geometry, 0).any()
    empty = estimator.weight_grad(x[:0], grad_out[:0], geometry, 0)
    assert empty.shape == geometry.weight_shape
    assert not empty.any()


@pytest.mark.parametrize("value", [float("nan"), float("inf")])
@pytest.mark.parametrize("estimator", [e for e in EVERY if e not in UNIFORM], ids=str)
def test_a_value_that_is_not_finite_stays_visible(estimator, value):
    geometry = GEOMETRIES[0]
    x, grad_out = tensors(geometry)
    grad_out[1, 2, 3, 3] = value
    found = estimator.weight_grad(x, grad_out, geometry, 0)
    assert not bool(found[2].isfinite().all())


@pytest.mark.parametrize("estimator", UNIFORM, ids=str)
def test_uniform_draws_show_such_a_value_where_they_take_it(estimator):
    geometry = GEOMETRIES[0]
    x, grad_out = tensors(geometry)
    grad_out[:, 2, 3] = float("nan")
    assert not bool(estimator.weight_grad(x, grad_out, geometry, 0)[2].isfinite().all())


@pytest.mark.parametrize("estimator", EVERY, ids=str)
def test_keys_name_the_draw(estimator):
    geometry = GEOMETRIES[0]
    x, grad_out = tensors(geometry)
    first, second, *others = (
        estimator.weight_grad(x, grad_out, geometry, key) for key in (1, 1, *range(2, 12))
    )
    assert torch.equal(first, second)
    assert any(not torch.equal(first, other) for other in others) == estimator.needs_key


@pytest.mark.parametrize("layout", [torch.contiguous_format, torch.channels_last])
@pytest.mark.parametrize("estimator", [*EVERY, Random(match_norm=True)], ids=str)
def test_in_a_network_only_the_weight_gradient_is_estimated(estimator, layout):
    x = torch.linspace(-3, 3, 4 * 3 * 64).sin().view(4, 3, 8, 8).contiguous(memory_format=layout)

    def gradients(estimator):
        torch.manual_seed(0)
        model = nn.Sequential(
            nn.Conv2d(3, 6, 3, padding=1),
            nn.ReLU(),
            nn.Conv2d(6, 4, 3, stride=2, groups=2),
            nn.Flatten(2),
            nn.Linear(9, 5),
        ).to(memory_format=layout)
        if estimator is not None:
            approximate(model, estimator, where=["2", "4"])
        model(x).square().sum().backward()
        return dict(model.named_parameters())

    exact, found = gradients(None), gradients(estimator)
    for name, parameter in exact.items():
        grad = found[name].grad
        assert grad.stride() == parameter.grad.stride()
        if name not in ("2.weight", "4.weight"):
            torch.testing.assert_close(grad, parameter.grad)
        else:
            assert not torch.equal(grad, parameter.grad)


CONV, CONV_OUT = LayerGeometry("conv2d", (8, 4, 3, 3)), (16, 8, 10, 10)
LINEAR = LayerGeometry("linear", (6, 4))
PATCH, MAPS = 36, 16 * 8


@pytest.mark.parametrize(
    ("estimator", "macs"),
    [
        (StratifiedSampling(0.25), 25 * MAPS * PATCH),
        (StratifiedSampling(0.25, means="batch"), 25 * MAPS * PATCH + 8 * PATCH),
        (StratifiedSampling(0.25, means="sample"), 26 * MAPS * PATCH),
        (SampleSampling(0.5), 50 * MAPS * PATCH),
        (PatchSampling(), MAPS * PATCH),
        (PatchSampling(2, keep_top=True), 3 * MAPS * PATCH),
        (PatchSampling(4), 100 * MAPS * PATCH),
        (BlockMeans(0.25), 50 * MAPS * PATCH),
        (BlockMeans(0.25, block=3), (25 + 16) * MAPS * PATCH),
        (WalshPairs(), 50 * MAPS * PATCH),
        (PooledMeans(), 25 * MAPS * PATCH),
        (PooledMeans(3), 16 * MAPS * PATCH),
        (TopK(2), 2 * MAPS * PATCH),
        (TopK(4), 100 * MAPS * PATCH),
        (MeProp(0.05), 100 * MAPS * PATCH),
        (ChannelTopK(0.25), 25 * MAPS * PATCH),
    ],
    ids=str,
)
def test_costs_of_a_convolution(estimator, macs):
    cost = estimator.cost(CONV, CONV_OUT)
    assert cost.macs == macs
    assert cost.exact_macs == 100 * MAPS * PATCH


@pytest.mark.parametrize(
    ("estimator", "shape", "macs"),
    [
        (StratifiedSampling(0.5, means="sample"), (8, 6), 4 * 24 + 24),
        (PooledMeans(), (8, 6), 2 * 24),
        (PooledMeans(), (3, 5, 6), 3 * 2 * 24),
        (WalshPairs(), (3, 5, 6), 2 * 3 * 2 * 24),
        (TopK(2), (8, 6), 2 * 24),
        (TopK(2), (3, 5, 6), 2 * 3 * 24),
        (ChannelTopK(0.5), (8, 6), 8 * 12),
        (SampleSampling(0.5), (8, 6), 4 * 24),
    ],
    ids=str,
)
def test_costs_of_a_linear_layer(estimator, shape, macs):
    assert estimator.cost(LINEAR, shape).macs == macs


@pytest.mark.parametrize(
    "kind", [StratifiedSampling, SampleSampling, BlockMeans, MeProp, ChannelTopK]
)
@pytest.mark.parametrize("keep", [0, 1.5, True, "0.5", float("nan")])
def test_wrong_shares_are_refused(kind, keep):
    with pytest.raises(ConfigError, match=f"{kind.__name__}: keep must be above 0 and at most 1"):
        kind(keep)


@pytest.mark.parametrize(
    ("kind", "settings", "message"),
    [
        (StratifiedSampling, {"means": "samples"}, "unknown means of StratifiedSampling"),
        (StratifiedSampling, {"common_phase": 1}, "common_phase must be True or False, got 1"),
        (SampleSampling, {"score": "norm"}, "unknown score of SampleSampling 'norm'"),
        (PatchSampling, {"draws": 0}, "draws must be an integer of at least 1, got 0"),
        (PatchSampling, {"score": "patch"}, "unknown score of PatchSampling 'patch'"),
        (PatchSampling, {"keep_top": "yes"}, "keep_top must be True or False, got 'yes'"),
        (
            BlockMeans,
            {"block": 1},
            "BlockMeans: block must be an integer of at least 2 and at most 64, got 1",
        ),
        (PooledMeans, {"block": 2.0}, "block must be an integer of at least 2, got 2.0"),
        (WalshPairs, {"odds": "evn"}, "unknown odds of WalshPairs 'evn': did you mean 'even'"),
        (TopK, {"k": True}, "TopK: k must be an integer of at least 1, got True"),
    ],
)
def test_wrong_settings_are_refused(kind, settings, message):
    with pytest.raises(ConfigError, match=message):
        kind(**settings)
