from __future__ import annotations

import pytest
import torch
from estimator_cases import GEOMETRIES, fix_draw, over_grid, tensors, variance

from slimgrad import kernels
from slimgrad.approx import SampleSampling
from slimgrad.approx.estimators import samplesampling
from slimgrad.approx.estimators.exact import exact_weight_grad
from slimgrad.approx.estimators.samplesampling import sample_norms


def batch(geometry, samples):
    """More samples than the shared cases have, of unequal weight."""
    x, grad_out = (t.repeat(samples // 3, *[1] * (t.dim() - 1)) for t in tensors(geometry))
    generator = torch.Generator().manual_seed(8)
    share = torch.rand(samples, *[1] * (x.dim() - 1), generator=generator) ** 3
    return x + share, grad_out * share


def of_each_sample(x, grad_out, geometry):
    pieces = [t.double().split(1) for t in (x, grad_out)]
    return torch.stack([exact_weight_grad(*pair, geometry) for pair in zip(*pieces, strict=True)])


@pytest.mark.parametrize("score", ["gradient", "uniform"])
@pytest.mark.parametrize("geometry", GEOMETRIES, ids=str)
def test_follows_the_definition(geometry, score, monkeypatch):
    x, grad_out = batch(geometry, 12)
    scores = grad_out.flatten(1).norm(dim=1) if score == "gradient" else torch.ones(12)
    samples, weights = kernels.systematic_sample(scores, 0.4 * 12, 0.3)
    parts = of_each_sample(x, grad_out, geometry)[samples.long()]
    expected = torch.einsum("n,n...->...", weights.double(), parts)
    fix_draw(monkeypatch, samplesampling, 0.3)
    found = SampleSampling(0.4, score=score).weight_grad(x, grad_out, geometry, 0)
    torch.testing.assert_close(found, expected.float(), rtol=1e-4, atol=1e-4)
    assert 0 < len(samples) < 12


def test_variance_of_uniform_draws_is_that_of_the_phases(monkeypatch):
    geometry = GEOMETRIES[0]
    x, grad_out = batch(geometry, 12)
    estimator = SampleSampling(0.25, score="uniform")
    found = over_grid(monkeypatch, samplesampling, estimator, x, grad_out, geometry, 4)
    parts = of_each_sample(x, grad_out, geometry)
    phases = torch.stack([parts[i::4].sum(0) for i in range(4)])
    expected = 4 * float(phases.square().sum()) - float(parts.sum(0).square().sum())
    assert variance(found) == pytest.approx(expected, rel=1e-4)


def test_norms_lower_the_variance(monkeypatch):
    geometry = GEOMETRIES[0]
    x, grad_out = batch(geometry, 24)
    spread = {
        score: variance(
            over_grid(
                monkeypatch,
                samplesampling,
                SampleSampling(0.5, score=score),
                x,
                grad_out,
                geometry,
                120,
            )
        )
        for score in ("gradient", "uniform")
    }
    assert spread["gradient"] < spread["uniform"] / 2


@pytest.mark.parametrize("layout", [torch.contiguous_format, torch.channels_last])
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64, torch.bfloat16])
def test_norms_of_samples(layout, dtype):
    grad_out = tensors(GEOMETRIES[0], dtype)[1].contiguous(memory_format=layout)
    expected = grad_out.double().flatten(1).norm(dim=1).float()
    tolerance = 1e-2 if dtype == torch.bfloat16 else 1e-5
    torch.testing.assert_close(sample_norms(grad_out), expected, rtol=tolerance, atol=0)


def test_a_sample_without_gradient_is_never_drawn():
    geometry = GEOMETRIES[0]
    x, grad_out = batch(geometry, 12)
    grad_out[4:] = 0
    x[4:] = float("nan")
    found = SampleSampling(0.5).weight_grad(x, grad_out, geometry, 0)
    torch.testing.assert_close(found, exact_weight_grad(x[:4], grad_out[:4], geometry))
