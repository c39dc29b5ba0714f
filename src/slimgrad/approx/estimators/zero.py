"""The zero weight gradient."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar, final

import torch

from slimgrad.approx.estimators.base import GradientEstimator, LayerGeometry, WeightGradCost


@final
@dataclass(frozen=True)
class Zero(GradientEstimator):
    """Replaces the weight gradient by zero.

    A = 0. Biased (by -G), without variance of its own. The layer is not frozen: momentum and
    weight decay still move its weight, because ``.grad`` is a zero tensor. Use
    :class:`~slimgrad.approx.Skip` for no gradient at all. The layer's input is not kept for the
    weight gradient; a ReLU before the layer may keep the same tensor for itself.

    References:
        Z. Wang, S. H. Nelaturu, S. Amarasinghe: Accelerated CNN Training Through Gradient
        Approximation, EMC2 2019 ("zero gradient").

    >>> Zero().weight_grad(None, torch.ones(2, 1), LayerGeometry("linear", (1, 2)), key=0)
    tensor([[0., 0.]])
    """

    name: ClassVar[str] = "zero"
    unbiased: ClassVar[bool] = False
    needs_input: ClassVar[bool] = False

    def weight_grad(
        self,
        x: torch.Tensor | None,
        grad_out: torch.Tensor,
        geometry: LayerGeometry,
        key: int,
    ) -> torch.Tensor:
        """A zero tensor in the weight's shape."""
        return grad_out.new_zeros(geometry.weight_shape)

    def cost(self, geometry: LayerGeometry, grad_out_shape: tuple[int, ...]) -> WeightGradCost:
        """No multiply-adds."""
        return WeightGradCost(macs=0, exact_macs=geometry.weight_grad_macs(grad_out_shape))
