from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import pytest
import torch
import torch.nn.functional as F

from slimgrad.approx import GradientEstimator, LayerGeometry, WeightGradCost
from slimgrad.approx.estimators.exact import exact_weight_grad


@dataclass(frozen=True)
class Traced(GradientEstimator):
    """The exact gradient, computed on the path of the estimators instead of the stock one."""

    name: ClassVar[str] = "traced"
    unbiased: ClassVar[bool] = True

    def weight_grad(self, x, grad_out, geometry, key):
        return exact_weight_grad(x, grad_out, geometry)

    def cost(self, geometry, grad_out_shape):
        macs = geometry.weight_grad_macs(grad_out_shape)
        return WeightGradCost(macs, macs)


@pytest.fixture(autouse=True)
def _one_thread():
    """Tensors this small only lose by a second thread."""
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(before)


@pytest.fixture(scope="session")
def traced():
    return Traced()


def slow_topone(x, grad_out, geometry: LayerGeometry, scale=1.0):
    """The definition of the top-1 estimate, one (sample, filter) map at a time."""
    if geometry.kind == "linear":
        x = x.flatten(1, -2).transpose(1, 2).unsqueeze(-1)
        grad_out = grad_out.flatten(1, -2).transpose(1, 2).unsqueeze(-1)
    filters, channels = geometry.weight_shape[:2]
    rows, columns = geometry.weight_shape[2:] or (1, 1)
    padded = F.pad(x, (geometry.padding[1],) * 2 + (geometry.padding[0],) * 2)
    estimate = torch.zeros(filters, channels, rows, columns, dtype=x.dtype)
    for sample in range(x.shape[0]):
        for k in range(filters):
            flat = grad_out[sample, k].flatten().tolist()
            best = max(range(len(flat)), key=lambda p: abs(flat[p]))
            row, column = divmod(best, grad_out.shape[3])
            top, left = row * geometry.stride[0], column * geometry.stride[1]
            first = k // (filters // geometry.groups) * channels
            patch = padded[
                sample,
                first : first + channels,
                top : top + geometry.dilation[0] * (rows - 1) + 1 : geometry.dilation[0],
                left : left + geometry.dilation[1] * (columns - 1) + 1 : geometry.dilation[1],
            ]
            estimate[k] += sum(flat) * patch
    return scale * estimate.reshape(geometry.weight_shape)


@pytest.fixture(scope="session")
def topone_truth():
    return slow_topone
