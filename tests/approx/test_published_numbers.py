"""Numbers about convolutions that the founding paper's tables rest on."""

import pytest
import torch
from torch import nn

from slimgrad.approx import LayerGeometry

# Channels in and out, height, and the multiply-adds of a batch of 128 in 1e9 operations (two each).
TABLE_1 = [
    (256, 256, 8, 9.66),
    (128, 128, 16, 9.66),
    (512, 512, 4, 9.66),
    (512, 512, 2, 2.42),
    (64, 64, 32, 9.66),
    (16, 16, 32, 0.60),
    (32, 32, 16, 0.60),
    (64, 64, 8, 0.60),
]


@pytest.mark.parametrize(("c", "k", "size", "giga"), TABLE_1)
def test_operations_of_table_1(c, k, size, giga):
    geometry = LayerGeometry("conv2d", (k, c, 3, 3), padding=(1, 1))
    macs = geometry.weight_grad_macs((128, k, size, size))
    assert 2 * macs / 1e9 == pytest.approx(giga, abs=0.005)


def test_batch_normalisation_makes_map_sums_cancel_over_the_batch():
    torch.manual_seed(0)
    layer, norm = nn.Conv2d(3, 5, 3, padding=1).double(), nn.BatchNorm2d(5).double()
    output = layer(torch.randn(8, 3, 6, 6, dtype=torch.float64))
    output.retain_grad()
    (norm(output) * torch.randn(8, 5, 6, 6, dtype=torch.float64)).sum().backward()
    grad = output.grad
    assert grad is not None
    per_filter, per_map = grad.sum((0, 2, 3)), grad.sum((2, 3))
    assert float(per_filter.abs().max()) < 1e-12
    assert float(per_map.abs().max()) > 0.1
