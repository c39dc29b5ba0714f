"""The weight gradient from means over blocks of output positions."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar, final

import torch

from slimgrad.approx.estimators.base import GradientEstimator, LayerGeometry, WeightGradCost
from slimgrad.approx.estimators.blocks import (
    as_blocks,
    block_macs,
    block_weight_grad,
    gradient_sums,
)
from slimgrad.approx.estimators.settings import check_number


@final
@dataclass(frozen=True)
class PooledMeans(GradientEstimator):
    r"""Replaces gradient and patch of every output position by their means over its block.

    With blocks B of b x b positions, g_B and X_B the means of g_r and of the patches X_r over B:
    A = sum over B of b^2 g_B X_B^T, at 1 / b^2 of the multiply-adds. Every tap of the filter sees
    the mean of its own inputs, so taps stay apart.

    Biased: G - A = sum over B of sum over r in B of (g_r - g_B) (X_r - X_B)^T, what gradient and
    input share within blocks. No draws. :class:`~slimgrad.approx.BlockMeans` samples this rest.

    At the edges blocks are filled up with positions without gradient. A block of a linear layer
    is b^2 neighbours in the order of its positions; for input (N, C) these are the rows of the
    batch.

    Args:
        block: b, >= 2.

    Raises:
        ConfigError: a value that is not allowed.

    References:
        Yang et al. (2023), "Efficient on-device training via gradient filtering", section 3, whose
        filter also merges the taps.

    >>> geometry = LayerGeometry("conv2d", (1, 1, 1, 1))
    >>> x, grad_out = torch.tensor([[[[1.0, 2.0], [3.0, 6.0]]]]), torch.ones(1, 1, 2, 2)
    >>> PooledMeans().weight_grad(x, grad_out, geometry, key=0).item()
    12.0
    """

    block: int = 2

    name: ClassVar[str] = "pooledmeans"
    unbiased: ClassVar[bool] = False

    def __post_init__(self) -> None:
        check_number("PooledMeans", "block", self.block, 2)

    def weight_grad(
        self,
        x: torch.Tensor | None,
        grad_out: torch.Tensor,
        geometry: LayerGeometry,
        key: int,
    ) -> torch.Tensor:
        """A, summed in float32 at least."""
        assert x is not None
        if grad_out.numel() == 0:
            return grad_out.new_zeros(geometry.weight_shape)
        maps = as_blocks(x, grad_out, geometry, self.block)
        ones = (1,) * self.block
        sums = gradient_sums(maps.grad_out, self.block)
        estimate = block_weight_grad(maps, ones, ones, sums)
        return estimate.div_(self.block**2).reshape(geometry.weight_shape).to(grad_out.dtype)

    def cost(self, geometry: LayerGeometry, grad_out_shape: tuple[int, ...]) -> WeightGradCost:
        """One product for each block."""
        exact = geometry.weight_grad_macs(grad_out_shape)
        macs = block_macs(geometry, grad_out_shape, self.block)
        return WeightGradCost(macs=min(macs, exact), exact_macs=exact)
