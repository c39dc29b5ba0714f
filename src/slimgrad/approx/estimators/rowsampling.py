"""The weight gradient from output positions drawn by importance."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar, Literal, final

import torch

from slimgrad import kernels
from slimgrad.approx.estimators.base import GradientEstimator, LayerGeometry, WeightGradCost
from slimgrad.approx.estimators.maps import as_maps, patch_norms
from slimgrad.approx.estimators.rows import MEANS, Means, mean_macs, weighted_rows
from slimgrad.approx.estimators.settings import check_choice, check_share
from slimgrad.core.rng import numpy_generator

Score = Literal["gradient", "gradient_patch"]


@final
@dataclass(frozen=True)
class RowSampling(GradientEstimator):
    r"""Draws output positions with probability proportional to their share in the gradient.

    The exact gradient is G = sum over positions r of g_r X_r^T. Each r is kept with probability
    p_r = min(1, score_r / t) and weighted by 1 / p_r; t makes the expected share of kept positions
    ``keep``. Positions are drawn systematically in the order (sample, row, column), which spreads
    them over space and samples. With ``means`` a part of G is computed exactly and only the rest
    is sampled:

    * "none": A = sum over kept r of (g_r / p_r) X_r^T;
    * "batch": with c the mean patch of the batch, the exact rank-one correction
      (sum g - sum over kept r of g_r / p_r) c^T is added, which samples g_r (X_r - c)^T;
    * "sample": with means m_n of g and c_n of X over the positions of sample n, the part
      sum_n (sum_r g_r) c_n^T is exact and (g_r - m_n) (X_r - c_n)^T is sampled.

    Guarantee: unbiased, E A = G, whatever the scores, since every position that adds to G has
    p_r > 0. Were positions drawn independently, the variance would be
    sum_r (1 / p_r - 1) ||g_r||^2 ||X_r||^2; systematic draws are usually below it.

    Linear layers: dimension 0 of the input is the sample, the middle ones are its positions; for
    input (N, C) the rows of the batch are the positions.

    Args:
        keep: expected share of positions kept, 0 < keep <= 1.
        score: "gradient" for ||g_r||, about the mean with means="sample"; or "gradient_patch" for
            that times ||X_r||, to which the mean of all ||X_r|| is added where there are means.
            This costs a pass over the input.
        means: "none", "batch" or "sample".

    Raises:
        ConfigError: a value that is not allowed.

    References:
        Drineas, Kannan, Mahoney (2006), "Fast Monte Carlo algorithms for matrices I"; Madow
        (1949) for systematic draws; Cochran (1977), chapter 7, for the difference estimators.

    >>> x, grad_out = torch.arange(6.0).reshape(3, 2), torch.tensor([[1.0], [0.0], [0.0]])
    >>> geometry = LayerGeometry("linear", (1, 2))
    >>> RowSampling(keep=0.4).weight_grad(x, grad_out, geometry, key=1).tolist()
    [[0.0, 1.0]]
    """

    keep: float = 0.25
    score: Score = "gradient"
    means: Means = "none"

    name: ClassVar[str] = "rowsampling"
    unbiased: ClassVar[bool] = True
    needs_key: ClassVar[bool] = True

    def __post_init__(self) -> None:
        check_share("RowSampling", "keep", self.keep)
        check_choice("RowSampling", "score", self.score, ("gradient", "gradient_patch"))
        check_choice("RowSampling", "means", self.means, MEANS)

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
        maps = as_maps(x, grad_out, geometry)
        means, norms = None, None
        if self.means == "sample":
            means, norms = kernels.centred_row_norms(maps.grad_out)
        else:
            norms = kernels.row_norms(maps.grad_out)
        if self.score == "gradient_patch":
            sizes = patch_norms(maps)
            # A patch of zeros differs from the mean patch, and must be drawn too.
            norms = norms * (sizes if self.means == "none" else sizes + sizes.mean())
        start = float(numpy_generator(key).random())
        rows, weights = kernels.systematic_sample(norms, self.keep * maps.rows, start)
        estimate = weighted_rows(maps, rows, weights, self.means, means)
        return estimate.reshape(geometry.weight_shape).to(grad_out.dtype)

    def cost(self, geometry: LayerGeometry, grad_out_shape: tuple[int, ...]) -> WeightGradCost:
        """The kept share, and one patch a sample ("sample") or a batch ("batch")."""
        exact = geometry.weight_grad_macs(grad_out_shape)
        macs = round(self.keep * exact) + mean_macs(self.means, geometry, grad_out_shape)
        return WeightGradCost(macs=min(exact, macs), exact_macs=exact)
