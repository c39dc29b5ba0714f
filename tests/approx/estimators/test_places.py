"""TopK and PatchSampling: few entries of every map."""

from __future__ import annotations

import pytest
import torch
from estimator_cases import GEOMETRIES, fix_draw, over_grid, tensors, variance

from slimgrad.approx import LayerGeometry, PatchSampling, TopK
from slimgrad.approx.estimators import patchsampling
from slimgrad.approx.estimators.exact import exact_weight_grad
from slimgrad.approx.estimators.maps import as_maps
from slimgrad.approx.estimators.places import weight_grad_at

POINTWISE = LayerGeometry("conv2d", (1, 3, 1, 1))


def maps_of(tensor, geometry):
    """A view (N, K, P) of an output gradient."""
    if geometry.kind == "linear":
        return tensor.transpose(1, 2)
    return tensor.flatten(2)


@pytest.mark.parametrize("k", [1, 2, 3, 4, 9])
@pytest.mark.parametrize("geometry", GEOMETRIES, ids=str)
def test_topk_is_the_exact_gradient_of_the_kept_entries(geometry, k):
    x, grad_out = tensors(geometry)
    kept = torch.zeros_like(grad_out)
    for n in range(3):
        for o in range(6):
            flat = maps_of(grad_out, geometry)[n, o]
            largest = sorted(range(len(flat)), key=lambda p: -abs(float(flat[p])))[:k]
            flags = torch.zeros(len(flat))
            flags[largest] = 1
            maps_of(kept, geometry)[n, o] = flat * flags
    found = TopK(k).weight_grad(x, grad_out, geometry, 0)
    expected = exact_weight_grad(x, kept, geometry)
    torch.testing.assert_close(found, expected, rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize("count", [1, 3, 4, 8])
def test_entries_listed_twice_count_twice(count):
    geometry = GEOMETRIES[3]
    x, grad_out = tensors(geometry)
    maps = as_maps(x, grad_out, geometry)
    generator = torch.Generator().manual_seed(1)
    places = torch.randint(0, 5, (3, 6, count), generator=generator)
    values = torch.randn(3, 6, count, generator=generator)
    dense = torch.zeros(3, 6, maps.positions)
    for n in range(3):
        for o in range(6):
            for place, value in zip(places[n, o], values[n, o], strict=True):
                dense[n, o, place] += value
    expected = exact_weight_grad(x, dense.view_as(grad_out), geometry)
    found = weight_grad_at(maps, places, values)
    torch.testing.assert_close(found, expected, rtol=1e-4, atol=1e-4)


def whole_numbers(samples, filters):
    """Maps of 4 x 4 signed whole numbers whose magnitudes add up to 64 each, and an input."""
    generator = torch.Generator().manual_seed(7)
    odds = torch.rand(samples * filters, 16, generator=generator) ** 3
    balls = torch.multinomial(odds, 64, replacement=True, generator=generator)
    sizes = torch.zeros(samples * filters, 16).scatter_add_(1, balls, torch.ones(balls.shape))
    signs = torch.randint(0, 2, sizes.shape, generator=generator) * 2 - 1
    x = torch.randn(samples, 3, 4, 4, generator=generator)
    return x, (sizes * signs).view(samples, filters, 4, 4)


@pytest.mark.parametrize("draws", [1, 2, 4])
def test_each_entry_is_drawn_with_exactly_its_probability(draws, monkeypatch):
    """Magnitudes are whole numbers of sum 64, so a grid of 64 starts hits each in proportion."""
    x, grad_out = whole_numbers(3, 5)
    geometry = LayerGeometry("conv2d", (5, 3, 1, 1))
    estimator = PatchSampling(draws)
    found = over_grid(monkeypatch, patchsampling, estimator, x, grad_out, geometry, 64)
    exact = exact_weight_grad(x, grad_out, geometry)
    torch.testing.assert_close(found.mean(0).float(), exact, rtol=1e-5, atol=1e-4)


def test_variance_of_one_draw_is_that_of_the_formula(monkeypatch):
    x, grad_out = whole_numbers(1, 1)
    # Patches of equal length: then ||X_p|| drops out of the probabilities.
    x = x / x.norm(dim=1, keepdim=True)
    exact = exact_weight_grad(x, grad_out, POINTWISE)
    for score in ("gradient", "gradient_patch"):
        estimator = PatchSampling(score=score)
        found = over_grid(monkeypatch, patchsampling, estimator, x, grad_out, POINTWISE, 64)
        expected = 64**2 - float(exact.square().sum())
        assert variance(found) == pytest.approx(expected, rel=1e-4)
        more = PatchSampling(4, score=score)
        spread = variance(over_grid(monkeypatch, patchsampling, more, x, grad_out, POINTWISE, 64))
        assert spread < expected / 4


def test_patch_norms_enter_the_probabilities(monkeypatch):
    generator = torch.Generator().manual_seed(2)
    x = torch.randn(1, 3, 4, 4, generator=generator) * torch.rand(1, 1, 4, 4, generator=generator)
    grad_out = torch.randn(1, 1, 4, 4, generator=generator)
    exact = exact_weight_grad(x, grad_out, POINTWISE).double()
    estimator = PatchSampling(score="gradient_patch")
    found = over_grid(monkeypatch, patchsampling, estimator, x, grad_out, POINTWISE, 1000)
    total = float((grad_out.abs() * x.norm(dim=1, keepdim=True)).sum())
    expected = total**2 - float(exact.square().sum())
    # Every draw has the same length, so the grid only matters to the mean.
    assert found.flatten(1).norm(dim=1).tolist() == pytest.approx([total] * 1000, rel=1e-4)
    assert variance(found) == pytest.approx(expected, rel=0.03)


def test_the_top_entry_enters_at_its_value(monkeypatch):
    x, grad_out = whole_numbers(2, 4)
    geometry = LayerGeometry("conv2d", (4, 3, 1, 1))
    top = TopK(1).weight_grad(x, grad_out, geometry, 0)
    rest = grad_out.clone().flatten(2)
    rest.scatter_(2, rest.abs().argmax(2, keepdim=True), 0.0)
    fix_draw(monkeypatch, patchsampling, 0.3)
    drawn = PatchSampling().weight_grad(x, rest.view_as(grad_out), geometry, 0)
    found = PatchSampling(keep_top=True).weight_grad(x, grad_out, geometry, 0)
    torch.testing.assert_close(found, top + drawn)


def test_maps_with_a_single_entry_are_exact():
    geometry = GEOMETRIES[0]
    x, grad_out = tensors(geometry)
    sparse = torch.zeros_like(grad_out)
    sparse[:, ::2, 3, 4] = grad_out[:, ::2, 3, 4]
    exact = exact_weight_grad(x, sparse, geometry)
    for estimator in (PatchSampling(), PatchSampling(3), PatchSampling(keep_top=True), TopK(1)):
        found = estimator.weight_grad(x, sparse, geometry, 5)
        torch.testing.assert_close(found, exact, rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("draw", [0.0, 1 - 2**-53])
@pytest.mark.parametrize("draws", [1, 3])
def test_the_ends_of_the_range_never_hit_an_entry_of_zero(draw, draws, monkeypatch):
    grad_out = torch.tensor([0.0, 0.1, 0.7, 0.0, 0.3, 0.0]).view(1, 1, 2, 3)
    x = torch.where(grad_out == 0, float("nan"), 1.0)
    fix_draw(monkeypatch, patchsampling, draw)
    geometry = LayerGeometry("conv2d", (1, 1, 1, 1))
    found = PatchSampling(draws).weight_grad(x, grad_out, geometry, 0)
    assert found.item() == pytest.approx(1.1)
