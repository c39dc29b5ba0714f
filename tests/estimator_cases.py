"""Layers, tensors and slow sums that the tests of estimators share."""

from __future__ import annotations

import numpy as np
import torch

from slimgrad.approx import LayerGeometry
from slimgrad.approx.estimators.maps import as_maps
from slimgrad.kernels.reference.positions import gradient_rows, patches

GEOMETRIES = [
    LayerGeometry("conv2d", (6, 4, 3, 3), padding=(1, 1)),
    LayerGeometry("conv2d", (6, 4, 3, 2), stride=(2, 1), padding=(0, 2)),
    LayerGeometry("conv2d", (6, 4, 2, 3), padding=(2, 1), dilation=(2, 1)),
    LayerGeometry("conv2d", (6, 2, 3, 3), padding=(1, 1), groups=2),
    LayerGeometry("linear", (6, 4)),
]


def output_shape(x, geometry):
    weight = torch.zeros(geometry.weight_shape)
    settings = (geometry.stride, geometry.padding, geometry.dilation, geometry.groups)
    return torch.conv2d(x, weight, None, *settings).shape


def tensors(geometry, dtype=torch.float32):
    generator = torch.Generator().manual_seed(5)
    if geometry.kind == "linear":
        x = torch.randn(3, 7, 4, generator=generator)
        grad_out = torch.randn(3, 7, 6, generator=generator)
    else:
        x = torch.randn(3, 4, 7, 8, generator=generator)
        shape = output_shape(x, geometry)
        grad_out = torch.randn(shape, generator=generator)
        grad_out = grad_out * torch.rand(shape[0], 1, *shape[2:], generator=generator) ** 4
    return (x + 0.5).to(dtype), (grad_out + 0.1).to(dtype)


class FixedDraw:
    """Stands in for a random generator: every draw is what is given."""

    def __init__(self, value):
        self.value = value

    def random(self, size=None):
        return self.value if size is None else np.full(size, self.value)


def fix_draw(monkeypatch, module, value):
    """Let the estimator of ``module`` draw ``value`` from now on."""
    monkeypatch.setattr(module, "numpy_generator", lambda key: FixedDraw(value))


def over_grid(monkeypatch, module, estimator, x, grad_out, geometry, count):
    """Estimates for all draws of an even grid over [0, 1), float64, stacked."""
    found = []
    for place in range(count):
        fix_draw(monkeypatch, module, (place + 0.5) / count)
        found.append(estimator.weight_grad(x, grad_out, geometry, place).double())
    return torch.stack(found)


def variance(estimates):
    """Mean squared distance of stacked estimates from their mean."""
    return float((estimates - estimates.mean(0)).square().sum() / len(estimates))


def table(x, grad_out, geometry):
    """Rows of all positions, float64: output gradients (R, K) and input patches (R, C R S)."""
    maps = as_maps(x.double(), grad_out.double(), geometry)
    return gradient_rows(maps.grad_out), patches(maps.x, **maps.convolution)


def product(gradients, seen, geometry):
    """Sum over rows of gradient times patch, in the weight's shape."""
    groups = geometry.groups
    by_group = torch.einsum(
        "rgk,rgf->gkf",
        gradients.view(len(gradients), groups, -1),
        seen.view(len(seen), groups, -1),
    )
    return by_group.reshape(geometry.weight_shape)
