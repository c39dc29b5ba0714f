"""The exact weight gradient."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar, final

import torch

from slimgrad.approx.estimators.base import GradientEstimator, LayerGeometry, WeightGradCost


def convolution_backward(
    grad_out: torch.Tensor,
    x: torch.Tensor,
    weight: torch.Tensor,
    geometry: LayerGeometry,
    wanted: tuple[bool, bool, bool],
) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
    """Torch's own (input, weight, bias) gradients of a convolution, those that are wanted."""
    return torch.ops.aten.convolution_backward(
        grad_out,
        x,
        weight,
        None,
        geometry.stride,
        geometry.padding,
        geometry.dilation,
        False,
        (0, 0),
        geometry.groups,
        wanted,
    )


def exact_weight_grad(
    x: torch.Tensor, grad_out: torch.Tensor, geometry: LayerGeometry
) -> torch.Tensor:
    """The exact weight gradient, by the operation autograd itself uses.

    Args:
        x: layer input, (N, C, H, W) or (..., C), any strides.
        grad_out: output gradient, (N, K, P, Q) or (..., K), any strides, the dtype of ``x``.
        geometry: the layer.

    Returns:
        The gradient, in the weight's shape.

    >>> g = LayerGeometry("linear", (1, 2))
    >>> exact_weight_grad(torch.tensor([[1.0, 2.0], [3.0, 4.0]]), torch.ones(2, 1), g)
    tensor([[4., 6.]])
    """
    if geometry.kind == "linear":
        return grad_out.flatten(0, -2).t() @ x.flatten(0, -2)
    placeholder = grad_out.new_empty(1).expand(geometry.weight_shape)
    _, weight_grad, _ = convolution_backward(
        grad_out, x, placeholder, geometry, (False, True, False)
    )
    return weight_grad


@final
@dataclass(frozen=True)
class Exact(GradientEstimator):
    """Leaves the weight gradient exact: the layer runs the stock operation.

    G[o] = sum over samples b and output positions p of grad_out[b, o, p] * X[b, p], where X[b, p]
    is the input patch that position p of sample b sees. Unbiased, without variance.

    >>> Exact().cost(LayerGeometry("linear", (10, 64)), (128, 10)).saved_macs
    0
    """

    name: ClassVar[str] = "exact"
    unbiased: ClassVar[bool] = True

    def weight_grad(
        self,
        x: torch.Tensor | None,
        grad_out: torch.Tensor,
        geometry: LayerGeometry,
        key: int,
    ) -> torch.Tensor:
        """G itself."""
        assert x is not None
        return exact_weight_grad(x, grad_out, geometry)

    def cost(self, geometry: LayerGeometry, grad_out_shape: tuple[int, ...]) -> WeightGradCost:
        """All multiply-adds of the exact gradient."""
        macs = geometry.weight_grad_macs(grad_out_shape)
        return WeightGradCost(macs=macs, exact_macs=macs)
