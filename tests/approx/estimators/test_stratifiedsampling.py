from __future__ import annotations

import itertools

import numpy as np
import pytest
import torch
from estimator_cases import GEOMETRIES, fix_draw, over_grid, product, table, tensors, variance

from slimgrad.approx import StratifiedSampling
from slimgrad.approx.estimators import stratifiedsampling
from slimgrad.approx.estimators.exact import exact_weight_grad
from slimgrad.approx.estimators.stratifiedsampling import one_of_each


@pytest.mark.parametrize(("total", "strata"), [(1, 1), (7, 3), (8, 4), (1000, 7), (5, 5)])
def test_strata_are_neighbours_of_nearly_one_size_and_cover_everything(total, strata):
    lowest, sizes = one_of_each(total, strata, np.zeros(strata))
    highest, _ = one_of_each(total, strata, np.full(strata, 1 - 2**-53))
    assert lowest[0] == 0
    assert int(highest[-1]) == total - 1
    assert torch.equal(highest[:-1] + 1, lowest[1:])
    assert torch.equal(highest - lowest + 1, sizes.int())
    assert int(sizes.max() - sizes.min()) <= 1


@pytest.mark.parametrize("geometry", GEOMETRIES, ids=str)
def test_follows_the_definition(geometry, monkeypatch):
    x, grad_out = tensors(geometry)
    gradients, seen = table(x, grad_out, geometry)
    strata = round(0.3 * len(seen))
    rows, sizes = one_of_each(len(seen), strata, np.full(strata, 0.4))
    drawn = gradients[rows.long()] * sizes[:, None]
    fix_draw(monkeypatch, stratifiedsampling, 0.4)
    found = StratifiedSampling(0.3).weight_grad(x, grad_out, geometry, 0)
    expected = product(drawn, seen[rows.long()], geometry)
    torch.testing.assert_close(found, expected.float(), rtol=1e-4, atol=1e-4)
    # The correction samples g (X - c) rather than g X, exactly plus sum g c.
    for means in ("batch", "sample"):
        corrected = StratifiedSampling(0.3, means=means).weight_grad(x, grad_out, geometry, 0)
        samples = 1 if means == "batch" else len(x)
        owner = rows.long() // (len(seen) // samples)
        means_of = [t.view(samples, -1, t.shape[1]).mean(1) for t in (gradients, seen)]
        rest = gradients[rows.long()] - (means_of[0][owner] if means == "sample" else 0)
        rest = rest * sizes[:, None]
        whole = product(means_of[0] * (len(seen) / samples), means_of[1], geometry)
        expected = whole + product(rest, seen[rows.long()] - means_of[1][owner], geometry)
        torch.testing.assert_close(corrected, expected.float(), rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize("geometry", [GEOMETRIES[0], GEOMETRIES[4]], ids=str)
def test_variance_of_independent_draws(geometry):
    x, grad_out = tensors(geometry)
    gradients, seen = table(x, grad_out, geometry)
    strata = round(0.25 * len(seen))
    edges = [number * len(seen) // strata for number in range(strata + 1)]
    expected = 0.0
    for start, end in itertools.pairwise(edges):
        squares = gradients[start:end].norm(dim=1) * seen[start:end].norm(dim=1)
        whole = product(gradients[start:end], seen[start:end], geometry)
        expected += float((end - start) * squares.square().sum() - whole.square().sum())
    exact = exact_weight_grad(x, grad_out, geometry)
    errors = torch.stack(
        [
            (StratifiedSampling(0.25).weight_grad(x, grad_out, geometry, key) - exact)
            .square()
            .sum()
            for key in range(800)
        ]
    )
    # Six standard errors of the mean: a false alarm below 1e-8.
    assert abs(float(errors.mean()) - expected) < 6 * float(errors.std()) / 800**0.5
    assert float(errors.std()) / 800**0.5 < 0.03 * expected


def test_variance_of_one_phase(monkeypatch):
    geometry = GEOMETRIES[0]
    x, grad_out = tensors(geometry)  # 168 positions: 42 strata of 4
    estimator = StratifiedSampling(0.25, common_phase=True)
    found = over_grid(monkeypatch, stratifiedsampling, estimator, x, grad_out, geometry, 4)
    gradients, seen = table(x, grad_out, geometry)
    phases = [product(gradients[i::4], seen[i::4], geometry) for i in range(4)]
    torch.testing.assert_close(found, 4 * torch.stack(phases), rtol=1e-4, atol=1e-3)
    expected = 4 * sum(float(phase.square().sum()) for phase in phases)
    expected -= float(sum(phases).square().sum())
    assert variance(found) == pytest.approx(expected, rel=1e-4)


def test_means_lower_the_variance():
    geometry = GEOMETRIES[1]
    x, grad_out = tensors(geometry)
    x = x + 3  # patches with much in common
    exact = exact_weight_grad(x, grad_out, geometry)
    errors = {}
    for means in ("none", "batch", "sample"):
        estimator = StratifiedSampling(0.25, means=means)
        squares = [
            float((estimator.weight_grad(x, grad_out, geometry, key) - exact).square().sum())
            for key in range(100)
        ]
        errors[means] = sum(squares)
    assert errors["batch"] < errors["none"] / 3
    assert errors["sample"] < errors["none"] / 3
