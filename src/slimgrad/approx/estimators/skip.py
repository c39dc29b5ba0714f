"""No weight gradient."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar, final

import torch

from slimgrad.approx.estimators.base import GradientEstimator, LayerGeometry, WeightGradCost


@final
@dataclass(frozen=True)
class Skip(GradientEstimator):
    """Computes no weight gradient: ``weight.grad`` is left as it was, None after ``zero_grad()``.

    Optimizers pass over parameters whose gradient is None, so neither momentum nor weight decay
    moves the weight in that step, unlike with :class:`~slimgrad.approx.Zero`. The bias keeps its
    exact gradient. Biased as an estimate of G.

    Refused where a process group is initialised, even one of a single process: data-parallel
    reduction needs a gradient for every parameter and turns the missing one into zeros.

    >>> Skip().cost(LayerGeometry("linear", (10, 64)), (128, 10)).macs
    0
    """

    name: ClassVar[str] = "skip"
    unbiased: ClassVar[bool] = False
    needs_input: ClassVar[bool] = False
    needs_gradient: ClassVar[bool] = False

    def weight_grad(
        self,
        x: torch.Tensor | None,
        grad_out: torch.Tensor,
        geometry: LayerGeometry,
        key: int,
    ) -> torch.Tensor:
        """Zeros, for callers that need a tensor; a converted layer never asks."""
        return grad_out.new_zeros(geometry.weight_shape)

    def cost(self, geometry: LayerGeometry, grad_out_shape: tuple[int, ...]) -> WeightGradCost:
        """No multiply-adds."""
        return WeightGradCost(macs=0, exact_macs=geometry.weight_grad_macs(grad_out_shape))
