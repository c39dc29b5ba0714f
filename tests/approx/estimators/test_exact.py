from __future__ import annotations

import pytest
import torch
import torch.nn.functional as F

from slimgrad.approx import Exact, LayerGeometry


@pytest.mark.parametrize("groups", [1, 2, 4])
@pytest.mark.parametrize(("stride", "dilation"), [((1, 1), (1, 1)), ((2, 1), (1, 2))])
def test_conv_equals_autograd_bit_for_bit(groups, stride, dilation):
    torch.manual_seed(0)
    x = torch.randn(2, 4, 9, 8)
    weight = torch.randn(8, 4 // groups, 3, 3, requires_grad=True)
    out = F.conv2d(x, weight, None, stride, (1, 2), dilation, groups)
    grad_out = torch.randn_like(out)
    out.backward(grad_out)
    geometry = LayerGeometry("conv2d", tuple(weight.shape), stride, (1, 2), dilation, groups)
    assert torch.equal(Exact().weight_grad(x, grad_out, geometry, 0), weight.grad)


@pytest.mark.parametrize("shape", [(5, 3), (2, 4, 3), (2, 2, 2, 3)])
def test_linear_equals_autograd(shape):
    torch.manual_seed(1)
    x = torch.randn(shape)
    weight = torch.randn(6, 3, requires_grad=True)
    out = F.linear(x, weight)
    grad_out = torch.randn_like(out)
    out.backward(grad_out)
    got = Exact().weight_grad(x, grad_out, LayerGeometry("linear", (6, 3)), 0)
    torch.testing.assert_close(got, weight.grad)


def test_costs_everything():
    cost = Exact().cost(LayerGeometry("conv2d", (16, 3, 3, 3)), (2, 16, 4, 4))
    assert cost.macs == cost.exact_macs == 2 * 16 * 16 * 27
    assert cost.saved_macs == 0
