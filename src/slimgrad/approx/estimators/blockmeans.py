"""The weight gradient from means over blocks, and output positions drawn from the rest."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar, final

import torch

from slimgrad import kernels
from slimgrad.approx.estimators.base import GradientEstimator, LayerGeometry, WeightGradCost
from slimgrad.approx.estimators.blocks import (
    as_blocks,
    block_macs,
    block_weight_grad,
    gradient_sums,
)
from slimgrad.approx.estimators.exact import exact_weight_grad
from slimgrad.approx.estimators.settings import check_number, check_share
from slimgrad.core.rng import numpy_generator

MOST_BLOCK = 64  # more than the maps of any network it pays for


@final
@dataclass(frozen=True)
class BlockMeans(GradientEstimator):
    r"""Computes the product of block means exactly and samples what is left within blocks.

    With blocks B of b x b positions, g_B and X_B the means of g_r and of the patches X_r over B,

    G = sum over B of b^2 g_B X_B^T + sum over B, r in B of (g_r - g_B) (X_r - X_B)^T.

    The first sum costs 1 / b^2 of the multiply-adds. Of the second, position r is kept with
    probability p_r = min(1, ||g_r - g_B|| / t) and weighted by 1 / p_r, with t for an expected
    share ``keep`` of positions, drawn systematically.

    Guarantee: unbiased, E A = G. Were positions drawn independently, the variance would be
    sum_r (1 / p_r - 1) ||g_r - g_B||^2 ||X_r - X_B||^2.

    At the edges blocks are filled up with positions without gradient. A block of a linear layer
    is b^2 neighbours in the order of its positions; for input (N, C) these are the rows of the
    batch.

    Args:
        keep: expected share of positions kept of the rest, 0 < keep <= 1; 1 is exact.
        block: b, 2 to 64.

    Raises:
        ConfigError: a value that is not allowed.

    References:
        Cochran (1977), "Sampling Techniques", chapter 7, for difference estimators; Madow (1949)
        for systematic draws.

    >>> geometry = LayerGeometry("conv2d", (1, 1, 1, 1))
    >>> x, grad_out = torch.tensor([[[[1.0, 2.0], [3.0, 6.0]]]]), torch.ones(1, 1, 2, 2)
    >>> BlockMeans().weight_grad(x, grad_out, geometry, key=0).item()
    12.0
    """

    keep: float = 0.125
    block: int = 2

    name: ClassVar[str] = "blockmeans"
    unbiased: ClassVar[bool] = True
    needs_key: ClassVar[bool] = True

    def __post_init__(self) -> None:
        check_share("BlockMeans", "keep", self.keep)
        check_number("BlockMeans", "block", self.block, 2, MOST_BLOCK)

    def weight_grad(
        self,
        x: torch.Tensor | None,
        grad_out: torch.Tensor,
        geometry: LayerGeometry,
        key: int,
    ) -> torch.Tensor:
        """A, summed in float32 at least."""
        assert x is not None
        if self.keep == 1 or grad_out.numel() == 0:
            return exact_weight_grad(x, grad_out, geometry)
        maps = as_blocks(x, grad_out, geometry, self.block)
        ones = (1,) * self.block
        sums = gradient_sums(maps.grad_out, self.block)
        rest = _rest(maps.grad_out, sums, self.block)
        start = float(numpy_generator(key).random())
        norms = kernels.row_norms(rest).cpu()
        rows, weights = kernels.systematic_sample(norms, self.keep * maps.rows, start)
        rows, weights = rows.to(x.device), weights.to(x.device)
        sums = _without_drawn(sums, rest, rows, weights, self.block)
        estimate = kernels.position_weight_grad(
            maps.x, rest, groups=maps.groups, rows=rows, weights=weights, **maps.convolution
        )
        exact = block_weight_grad(maps, ones, ones, sums)
        estimate.add_(exact, alpha=1 / self.block**2)
        return estimate.reshape(geometry.weight_shape).to(grad_out.dtype)

    def cost(self, geometry: LayerGeometry, grad_out_shape: tuple[int, ...]) -> WeightGradCost:
        """One product for each block, and the kept share."""
        exact = geometry.weight_grad_macs(grad_out_shape)
        macs = block_macs(geometry, grad_out_shape, self.block) + round(self.keep * exact)
        return WeightGradCost(macs=min(exact, macs), exact_macs=exact)


def _rest(grad_out: torch.Tensor, sums: torch.Tensor, block: int) -> torch.Tensor:
    """g_r - g_B of every position."""
    means, rest = sums / block**2, torch.empty_like(grad_out)
    for place in range(block**2):
        cut = (..., slice(place // block, None, block), slice(place % block, None, block))
        torch.sub(grad_out[cut], means, out=rest[cut])
    return rest


def _without_drawn(
    sums: torch.Tensor, rest: torch.Tensor, rows: torch.Tensor, weights: torch.Tensor, block: int
) -> torch.Tensor:
    """Block sums less the weighted (g_r - g_B) that were drawn, which takes X_B off their X_r."""
    height, width = rest.shape[2:]
    places = rows.long()
    sample, place = places // (height * width), places % (height * width)
    row, column = place // width // block, place % width // block
    blocks = (sample * (height // block) + row) * (width // block) + column
    drawn = rest.permute(0, 2, 3, 1).reshape(-1, rest.shape[1])[places]
    table = sums.permute(0, 2, 3, 1).reshape(-1, rest.shape[1])
    table = table.index_add(0, blocks, drawn * weights.to(drawn.dtype)[:, None], alpha=-1)
    return table.view(len(rest), height // block, width // block, -1).permute(0, 3, 1, 2)
