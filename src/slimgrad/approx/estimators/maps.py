"""Every layer as a convolution over maps, in float32 at least: what sampling kernels work on."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import torch
import torch.nn.functional as F

from slimgrad import kernels
from slimgrad.approx.estimators.base import LayerGeometry, Pair


@dataclass(frozen=True)
class Maps:
    """Input and output gradient of a layer, (N, C, H, W) and (N, K, P, Q).

    Attributes:
        x: layer input.
        grad_out: output gradient, of the same dtype, float32 or float64.
        kernel_size: (R, S).
        stride, padding, dilation: (rows, columns).
        groups: number of channel groups.
    """

    x: torch.Tensor
    grad_out: torch.Tensor
    kernel_size: Pair
    stride: Pair
    padding: Pair
    dilation: Pair
    groups: int

    @property
    def positions(self) -> int:
        """Output positions of a sample, P Q."""
        return self.grad_out.shape[2] * self.grad_out.shape[3]

    @property
    def rows(self) -> int:
        """Output positions of all samples, N P Q."""
        return self.grad_out.shape[0] * self.positions

    @property
    def convolution(self) -> dict[str, Any]:
        """Keywords of the kernels on convolutions."""
        return {
            "kernel_size": self.kernel_size,
            "stride": self.stride,
            "padding": self.padding,
            "dilation": self.dilation,
        }


def as_maps(x: torch.Tensor, grad_out: torch.Tensor, geometry: LayerGeometry) -> Maps:
    """The layer's tensors as maps, without copies where dtype and strides allow it.

    A linear layer is a convolution with one tap. Dimension 0 of its input is the sample and the
    middle ones are positions; for input (N, C) the N rows are positions of a single sample.

    >>> maps = as_maps(torch.zeros(8, 3), torch.zeros(8, 5), LayerGeometry("linear", (5, 3)))
    >>> maps.x.shape, maps.rows
    (torch.Size([1, 3, 8, 1]), 8)
    """
    if x.dtype in (torch.bfloat16, torch.float16):
        x, grad_out = x.float(), grad_out.float()
    if geometry.kind == "linear":
        if x.dim() == 2:
            x, grad_out = x.unsqueeze(0), grad_out.unsqueeze(0)
        x, grad_out = (t.flatten(1, -2).transpose(1, 2).unsqueeze(-1) for t in (x, grad_out))
        return Maps(x, grad_out, (1, 1), (1, 1), (0, 0), (1, 1), 1)
    rows, columns = geometry.weight_shape[2:]
    return Maps(
        x,
        grad_out,
        (rows, columns),
        geometry.stride,
        geometry.padding,
        geometry.dilation,
        geometry.groups,
    )


def patch_norms(maps: Maps) -> torch.Tensor:
    """Norm of the input patch of every position, all groups together, float32 (N P Q,)."""
    squares = kernels.row_norms(maps.x).square().view(len(maps.x), 1, *maps.x.shape[2:])
    ones = squares.new_ones(1, 1, *maps.kernel_size)
    sums = F.conv2d(squares, ones, None, maps.stride, maps.padding, maps.dilation)
    return sums.clamp_(min=0).sqrt_().flatten()
