"""The plain-torch top-1 filter gradient against a loop written from the definition."""

from __future__ import annotations

import itertools

import pytest
import torch
from torch.nn import functional as F

from slimgrad.kernels import topone_weight_grad
from slimgrad.kernels.backend import use_backend


@pytest.fixture(autouse=True)
def _reference_only():
    with use_backend("reference"):
        yield


def by_loops(x, grad_out, kernel, stride, padding, dilation, groups, scale=1.0):
    """The definition, one number at a time."""
    (samples, channels, rows, columns), filters = x.shape, grad_out.shape[1]
    width, per_group = channels // groups, filters // groups
    result = torch.zeros(filters, width, *kernel, dtype=torch.float64)
    for n, k in itertools.product(range(samples), range(filters)):
        places = list(itertools.product(range(grad_out.shape[2]), range(grad_out.shape[3])))
        values = [float(grad_out[n, k, p, q]) for p, q in places]
        magnitudes = [abs(v) for v in values]
        p, q = places[magnitudes.index(max(magnitudes))]
        for c, r, s in itertools.product(range(width), range(kernel[0]), range(kernel[1])):
            i = p * stride[0] - padding[0] + r * dilation[0]
            j = q * stride[1] - padding[1] + s * dilation[1]
            if 0 <= i < rows and 0 <= j < columns:
                seen = float(x[n, k // per_group * width + c, i, j])
                result[k, c, r, s] += scale * sum(values) * seen
    return result


def draw(seed, x_shape, grad_shape, dtype=torch.float64):
    generator = torch.Generator().manual_seed(seed)
    return tuple(
        torch.randn(shape, generator=generator, dtype=torch.float64).to(dtype)
        for shape in (x_shape, grad_shape)
    )


@pytest.mark.parametrize(
    ("kernel", "stride", "padding", "dilation", "groups", "out"),
    [
        ((3, 3), (1, 1), (1, 1), (1, 1), 1, (5, 6)),
        ((1, 1), (1, 1), (0, 0), (1, 1), 2, (5, 6)),
        ((3, 1), (2, 1), (2, 0), (1, 1), 1, (4, 6)),
        ((2, 3), (1, 2), (0, 2), (2, 1), 4, (3, 4)),
        ((5, 5), (2, 2), (2, 2), (1, 1), 2, (3, 3)),
    ],
)
def test_equals_the_definition(kernel, stride, padding, dilation, groups, out):
    x, grad_out = draw(1, (3, 4, 5, 6), (3, 8, *out))
    settings = (kernel, stride, padding, dilation, groups, 0.5)
    got = topone_weight_grad(x, grad_out, *settings)
    assert torch.allclose(got, by_loops(x, grad_out, *settings), rtol=1e-13, atol=1e-13)


def test_hand_example():
    x = torch.arange(1.0, 10.0, dtype=torch.float64).reshape(1, 1, 3, 3)
    grad_out = torch.diag(torch.tensor([1.0, -3.0, 1.0], dtype=torch.float64)).reshape(1, 1, 3, 3)
    exact = torch.nn.grad.conv2d_weight(x, (1, 1, 3, 3), grad_out, padding=1)
    assert exact.flatten().tolist() == [2, 0, -9, -4, -5, -16, -21, -20, -22]
    got = topone_weight_grad(x, grad_out, 3, padding=1)
    assert got.flatten().tolist() == [-1, -2, -3, -4, -5, -6, -7, -8, -9]


@pytest.mark.parametrize(("stride", "out"), [(1, 6), (2, 3)])
def test_bias_identity(stride, out):
    """A - G is the sum of grad_out times the difference of chosen and own patch."""
    x, grad_out = draw(2, (4, 3, 6, 6), (4, 5, out, out))
    patches = F.unfold(x, 3, padding=1, stride=stride)  # N, C R S, P Q
    maps = grad_out.flatten(2)
    place = maps.abs().argmax(2)
    chosen = torch.stack([patches[n][:, place[n]] for n in range(4)])  # N, C R S, K
    difference = chosen[:, :, :, None] - patches[:, :, None, :]
    bias = torch.einsum("nkp,nckp->kc", maps, difference).reshape(5, 3, 3, 3)
    exact = torch.nn.grad.conv2d_weight(x, (5, 3, 3, 3), grad_out, stride=stride, padding=1)
    approximate = topone_weight_grad(x, grad_out, 3, stride, 1)
    assert bias.norm() > 0.1 * exact.norm()
    assert torch.allclose(approximate - exact, bias, rtol=1e-12, atol=1e-12)


def test_exact_where_the_input_is_constant_in_space():
    x, grad_out = draw(3, (4, 3, 1, 1), (4, 5, 4, 4))
    x = x.expand(4, 3, 6, 6)
    exact = torch.nn.grad.conv2d_weight(x.contiguous(), (5, 3, 3, 3), grad_out)
    assert torch.allclose(topone_weight_grad(x, grad_out, 3), exact, rtol=1e-12, atol=1e-12)


@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16, torch.float32])
def test_short_floats_are_summed_in_float32(dtype):
    x, grad_out = draw(4, (3, 4, 5, 5), (3, 6, 5, 5), dtype)
    got = topone_weight_grad(x, grad_out, 3, 1, 1)
    wide = topone_weight_grad(x.float(), grad_out.float(), 3, 1, 1)
    assert got.dtype == dtype
    assert torch.equal(got, wide.to(dtype))


def test_scale_multiplies():
    x, grad_out = draw(5, (2, 2, 4, 4), (2, 3, 4, 4))
    whole = topone_weight_grad(x, grad_out, 3, 1, 1)
    assert torch.equal(topone_weight_grad(x, grad_out, 3, 1, 1, scale=1 / 128), whole / 128)
