from __future__ import annotations

import pytest
import torch
from estimator_cases import output_shape

from slimgrad.approx import LayerGeometry, TopOne
from slimgrad.approx.estimators.exact import exact_weight_grad

GEOMETRIES = [
    LayerGeometry("conv2d", (6, 4, 3, 3), padding=(1, 1)),
    LayerGeometry("conv2d", (6, 4, 3, 2), stride=(2, 1), padding=(0, 2)),
    LayerGeometry("conv2d", (6, 4, 2, 3), padding=(2, 1), dilation=(2, 1)),
    LayerGeometry("conv2d", (6, 2, 3, 3), padding=(1, 1), groups=2),
    LayerGeometry("conv2d", (8, 1, 3, 3), stride=(2, 2), padding=(1, 1), groups=4),
    LayerGeometry("conv2d", (6, 4, 1, 1)),
]


def tensors(geometry, dtype=torch.float32):
    generator = torch.Generator().manual_seed(5)
    x = torch.randn(3, 4, 7, 8, generator=generator)
    shape = output_shape(x, geometry)
    return x.to(dtype), torch.randn(shape, generator=generator).to(dtype)


@pytest.mark.parametrize("geometry", GEOMETRIES, ids=str)
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
@pytest.mark.parametrize("layout", [torch.contiguous_format, torch.channels_last])
def test_conv_follows_the_definition(geometry, dtype, layout, topone_truth):
    x, grad_out = (t.contiguous(memory_format=layout) for t in tensors(geometry, dtype))
    got = TopOne(scale=0.5).weight_grad(x, grad_out, geometry, 0)
    torch.testing.assert_close(got, topone_truth(x, grad_out, geometry, 0.5))


@pytest.mark.parametrize("shape", [(3, 5), (3, 2, 5), (1, 1)])
def test_linear_with_positions_follows_the_definition(shape, topone_truth):
    generator = torch.Generator().manual_seed(6)
    geometry = LayerGeometry("linear", (6, 4))
    x = torch.randn(*shape, 4, generator=generator)
    grad_out = torch.randn(*shape, 6, generator=generator)
    got = TopOne().weight_grad(x, grad_out, geometry, 0)
    torch.testing.assert_close(got, topone_truth(x, grad_out, geometry))


def test_linear_without_positions_is_exact():
    generator = torch.Generator().manual_seed(7)
    geometry = LayerGeometry("linear", (6, 4))
    x, grad_out = (torch.randn(5, n, generator=generator) for n in (4, 6))
    got = TopOne(scale=2.0).weight_grad(x, grad_out, geometry, 0)
    assert torch.equal(got, 2 * exact_weight_grad(x, grad_out, geometry))
    assert TopOne().cost(geometry, (5, 6)).saved_macs == 0


def test_bias_identity():
    """A - G = sum over samples and positions of grad_out (patch of the maximum - patch)."""
    geometry = LayerGeometry("conv2d", (6, 4, 3, 3), padding=(1, 1))
    x, grad_out = tensors(geometry, torch.float64)
    patches = torch.nn.functional.unfold(x, 3, padding=1)  # (N, C R S, P)
    maps = grad_out.flatten(2)
    place = maps.abs().argmax(-1)
    chosen = torch.stack([patches[n][:, place[n]].T for n in range(3)])  # (N, K, C R S)
    difference = chosen[:, :, :, None] - patches[:, None]
    bias = torch.einsum("nkp,nkcp->kc", maps, difference).reshape(geometry.weight_shape)
    top = TopOne().weight_grad(x, grad_out, geometry, 0)
    torch.testing.assert_close(top - exact_weight_grad(x, grad_out, geometry), bias)


def test_half_precision_is_summed_in_float32():
    geometry = LayerGeometry("conv2d", (6, 4, 3, 3), padding=(1, 1))
    x, grad_out = tensors(geometry, torch.bfloat16)
    got = TopOne().weight_grad(x, grad_out, geometry, 0)
    assert got.dtype == torch.bfloat16
    wide = TopOne().weight_grad(x.float(), grad_out.float(), geometry, 0)
    assert torch.equal(got, wide.bfloat16())


def test_zero_map_and_no_samples_give_zero():
    geometry = LayerGeometry("conv2d", (6, 4, 3, 3), padding=(1, 1))
    x, grad_out = tensors(geometry)
    assert not TopOne().weight_grad(x, grad_out * 0, geometry, 0).any()
    empty = TopOne().weight_grad(x[:0], grad_out[:0], geometry, 0)
    assert empty.shape == geometry.weight_shape
    assert not empty.any()


def test_costs_one_patch_a_map():
    conv = LayerGeometry("conv2d", (8, 2, 3, 5), groups=2)
    cost = TopOne().cost(conv, (3, 8, 4, 4))
    assert cost.macs == 3 * 8 * 2 * 3 * 5
    assert cost.exact_macs == 16 * cost.macs
    linear = TopOne().cost(LayerGeometry("linear", (6, 4)), (3, 5, 2, 6))
    assert (linear.macs, linear.exact_macs) == (3 * 6 * 4, 3 * 10 * 6 * 4)
