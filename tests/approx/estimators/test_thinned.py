"""MeProp and ChannelTopK: exact gradients of a thinned output gradient."""

from __future__ import annotations

import pytest
import torch
from estimator_cases import GEOMETRIES, tensors

from slimgrad.approx import ChannelTopK, LayerGeometry, MeProp
from slimgrad.approx.estimators.exact import exact_weight_grad

GROUPED = LayerGeometry("conv2d", (8, 1, 3, 3), stride=(2, 2), padding=(1, 1), groups=4)
CASES = [*GEOMETRIES, GROUPED]


@pytest.mark.parametrize("keep", [0.05, 0.4, 1e-9])
@pytest.mark.parametrize("geometry", CASES, ids=str)
def test_meprop_keeps_the_largest_entries_of_each_sample(geometry, keep):
    x, grad_out = tensors(geometry)
    thinned = torch.zeros_like(grad_out)
    for source, target in zip(grad_out.flatten(1), thinned.flatten(1), strict=True):
        count = max(1, round(keep * len(source)))
        for place in sorted(range(len(source)), key=lambda p: -abs(float(source[p])))[:count]:
            target[place] = source[place]
    found = MeProp(keep).weight_grad(x, grad_out, geometry, 0)
    torch.testing.assert_close(found, exact_weight_grad(x, thinned, geometry))


@pytest.mark.parametrize("keep", [0.2, 0.5, 0.75, 1e-9])
@pytest.mark.parametrize("geometry", CASES, ids=str)
def test_channels_of_the_largest_mean_are_exact_and_the_others_zero(geometry, keep):
    x, grad_out = tensors(geometry)
    filters = geometry.weight_shape[0]
    loudness = torch.arange(filters).mul(5).remainder(filters) + 1.0  # a permutation
    shape = (-1, 1, 1) if geometry.kind == "conv2d" else (-1,)
    grad_out = grad_out.sign() * loudness.view(shape)
    exact = exact_weight_grad(x, grad_out, geometry)
    width = filters // geometry.groups
    count = max(1, round(keep * width))
    kept = []
    for first in range(0, filters, width):
        group = range(first, first + width)
        kept += sorted(group, key=lambda o: -float(loudness[o]))[:count]
    found = ChannelTopK(keep).weight_grad(x, grad_out, geometry, 0)
    for o in range(filters):
        expected = exact[o] if o in kept else torch.zeros_like(exact[o])
        torch.testing.assert_close(found[o], expected, rtol=1e-4, atol=1e-4)


def test_cost_of_channels_is_that_of_the_filters_kept():
    assert ChannelTopK(0.3).cost(GROUPED, (2, 8, 4, 4)).macs == 2 * 16 * 4 * 9
    plain = LayerGeometry("linear", (10, 4))
    assert ChannelTopK(0.25).cost(plain, (8, 10)).macs == 8 * 2 * 4


def test_plain_rows_are_the_samples_of_meprop():
    geometry = LayerGeometry("linear", (3, 2))
    x = torch.eye(2)
    grad_out = torch.tensor([[1.0, -5.0, 2.0], [0.1, 0.2, 0.3]])
    found = MeProp(0.4).weight_grad(x, grad_out, geometry, 0)
    assert found.T.tolist() == [[0.0, -5.0, 0.0], [0.0, 0.0, pytest.approx(0.3)]]
