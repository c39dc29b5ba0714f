"""The exact weight gradient by the kernel of sampled positions, given all of them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar, final

import torch

from slimgrad import kernels
from slimgrad.approx.estimators.base import GradientEstimator, LayerGeometry, WeightGradCost
from slimgrad.approx.estimators.exact import exact_weight_grad
from slimgrad.approx.estimators.maps import as_maps


@final
@dataclass(frozen=True)
class ExactPositions(GradientEstimator):
    """The exact weight gradient, summed position by position.

    G = sum over output positions r of g_r X_r^T, as the stock operation but in another order of
    summation: equal up to the rounding of float32 sums. On maps of 4x4 and smaller it can be
    quicker, since taps that see only padding are left out; :func:`slimgrad.tune` finds out.
    Unbiased, without variance.

    Linear layers are left to the stock product.

    >>> x, grad_out = torch.ones(1, 1, 2, 2), torch.ones(1, 1, 2, 2)
    >>> geometry = LayerGeometry("conv2d", (1, 1, 3, 3), padding=(1, 1))
    >>> ExactPositions().weight_grad(x, grad_out, geometry, key=0)[0, 0].tolist()
    [[1.0, 2.0, 1.0], [2.0, 4.0, 2.0], [1.0, 2.0, 1.0]]
    """

    name: ClassVar[str] = "exactpositions"
    unbiased: ClassVar[bool] = True

    def weight_grad(
        self,
        x: torch.Tensor | None,
        grad_out: torch.Tensor,
        geometry: LayerGeometry,
        key: int,
    ) -> torch.Tensor:
        """G, summed in float32 at least."""
        assert x is not None
        if geometry.kind == "linear":
            return exact_weight_grad(x, grad_out, geometry)
        maps = as_maps(x, grad_out, geometry)
        gradient = kernels.position_weight_grad(
            maps.x, maps.grad_out, groups=maps.groups, **maps.convolution
        )
        return gradient.to(grad_out.dtype)

    def cost(self, geometry: LayerGeometry, grad_out_shape: tuple[int, ...]) -> WeightGradCost:
        """All multiply-adds of the exact gradient; those with padding are not told apart."""
        macs = geometry.weight_grad_macs(grad_out_shape)
        return WeightGradCost(macs=macs, exact_macs=macs)
