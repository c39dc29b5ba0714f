"""The weight gradient from two of the four Walsh-Hadamard terms of 2 x 2 blocks."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar, Literal, final

import torch

from slimgrad.approx.estimators.base import GradientEstimator, LayerGeometry, WeightGradCost
from slimgrad.approx.estimators.blocks import (
    as_blocks,
    block_macs,
    block_weight_grad,
)
from slimgrad.approx.estimators.maps import Maps
from slimgrad.approx.estimators.settings import check_choice
from slimgrad.core.rng import numpy_generator

# Of the rows and columns of a block, for each term.
_SIGNS = (((1, 1), (1, 1)), ((1, 1), (1, -1)), ((1, -1), (1, 1)), ((1, -1), (1, -1)))
# Share of the probabilities that is spread evenly, so that no weight exceeds 30.
_EVEN = 0.1


@final
@dataclass(frozen=True)
class WalshPairs(GradientEstimator):
    r"""Keeps the mean of every 2 x 2 block and one of the three differences within it.

    With h_0 .. h_3 the rows of the Hadamard matrix of size 4, and sums over the positions i of
    every block B,

    H_k = 1/4 sum over B of (sum_i h_ki g_i) (sum_i h_ki X_i)^T and G = H_0 + H_1 + H_2 + H_3.

    One k of 1, 2, 3 is drawn with probability pi_k for the whole batch:
    A = H_0 + H_k / pi_k, at half of the multiply-adds and with dense operations only.

    Guarantee: unbiased, E A = G. Variance sum_k ||H_k||^2 / pi_k - ||sum_k H_k||^2, least for
    pi_k ~ ||H_k||.

    At the edges blocks are filled up with positions without gradient. A block of a linear layer
    is four neighbours in the order of its positions; for input (N, C) these are the rows of the
    batch.

    Args:
        odds: "gradient" for 0.9 of pi_k proportional to the norm of sum_i h_ki g_i over all
            blocks, and 0.1 even; or "even", pi_k = 1/3.

    Raises:
        ConfigError: a value that is not allowed.

    References:
        Horn and Johnson (2012), "Matrix Analysis", for Hadamard matrices; Hansen and Hurwitz
        (1943) for the weight 1 / pi_k.

    >>> geometry = LayerGeometry("conv2d", (1, 1, 1, 1))
    >>> x = torch.tensor([[[[1.0, 1.0], [3.0, 3.0]]]])
    >>> WalshPairs().weight_grad(x, torch.ones(1, 1, 2, 2), geometry, key=0).item()
    8.0
    """

    odds: Literal["gradient", "even"] = "gradient"

    name: ClassVar[str] = "walshpairs"
    unbiased: ClassVar[bool] = True
    needs_key: ClassVar[bool] = True

    def __post_init__(self) -> None:
        check_choice("WalshPairs", "odds", self.odds, ("gradient", "even"))

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
        maps = as_blocks(x, grad_out, geometry, 2)
        gradients = walsh_gradients(maps.grad_out)
        odds = self.probabilities(gradients)
        draw = float(numpy_generator(key).random())
        term = 1 + (draw >= odds[0]) + (draw >= odds[0] + odds[1])
        estimate = walsh_term(maps, gradients, 0)
        estimate.add_(walsh_term(maps, gradients, term), alpha=1 / odds[term - 1])
        return estimate.reshape(geometry.weight_shape).to(grad_out.dtype)

    def probabilities(self, gradients: list[torch.Tensor]) -> tuple[float, float, float]:
        """pi_1, pi_2, pi_3 for the four :func:`walsh_gradients`."""
        norms = torch.ones(3)
        if self.odds == "gradient":
            norms = torch.stack([torch.linalg.vector_norm(g) for g in gradients[1:]]).cpu()
        total = float(norms.sum())
        if not 0 < total < float("inf"):
            return 1 / 3, 1 / 3, 1 / 3
        first, second = (_EVEN / 3 + (1 - _EVEN) * float(norm) / total for norm in norms[:2])
        return first, second, 1 - first - second

    def cost(self, geometry: LayerGeometry, grad_out_shape: tuple[int, ...]) -> WeightGradCost:
        """Two products for each block."""
        exact = geometry.weight_grad_macs(grad_out_shape)
        macs = 2 * block_macs(geometry, grad_out_shape, 2)
        return WeightGradCost(macs=min(macs, exact), exact_macs=exact)


def walsh_gradients(grad_out: torch.Tensor) -> list[torch.Tensor]:
    """sum_i h_ki g_i of every block of (N, K, P, Q), for k = 0 .. 3."""
    upper, lower = grad_out[:, :, ::2], grad_out[:, :, 1::2]
    found = []
    for rows in (upper + lower, upper - lower):
        left, right = rows[..., ::2], rows[..., 1::2]
        found += [left + right, left - right]
    return found


def walsh_term(maps: Maps, gradients: list[torch.Tensor], k: int) -> torch.Tensor:
    """H_k of a layer in 2 x 2 blocks."""
    return block_weight_grad(maps, *_SIGNS[k], gradients[k]).div_(4)
