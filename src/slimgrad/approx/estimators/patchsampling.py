"""The weight gradient from a few entries drawn from every output map."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar, Literal, final

import torch

from slimgrad.approx.estimators.base import GradientEstimator, LayerGeometry, WeightGradCost
from slimgrad.approx.estimators.maps import as_maps, patch_norms
from slimgrad.approx.estimators.places import places_macs, weight_grad_at
from slimgrad.approx.estimators.settings import check_choice, check_number, check_switch
from slimgrad.core.rng import numpy_generator

# Below 1 in float32 even after rounding, so that a draw never passes the end of its map.
_LAST = 1 - 2**-24


@final
@dataclass(frozen=True)
class PatchSampling(GradientEstimator):
    r"""Draws entries of every (sample, filter) map with probability proportional to their size.

    Of the map of sample n and filter o, m entries p_1 .. p_m are drawn with
    q_p = s_p / sum_p s_p, where s_p = |g_{n o p}|, times ||X_{n p}|| with score "gradient_patch":
    A_o = sum_n 1/m sum_j (g_{n o p_j} / q_{p_j}) X_{n p_j}. The j-th draw lies in the j-th of m
    equal parts of the running sum of q, all at one place drawn for the map. With ``keep_top`` the
    largest entry of the map enters at its value, and the draws are of the others.

    Guarantee: unbiased, E A = G, unlike :class:`~slimgrad.TopOne`, which keeps one entry too. With
    m = 1 and score "gradient_patch" the variance of map (n, o) is
    (sum_p |g_p| ||X_p||)^2 - ||sum_p g_p X_p||^2, p without the largest for ``keep_top``; more
    draws lower it, as a rule faster than 1 / m.

    Up to three entries a map (``draws`` and the top one) the work is that of these entries;
    beyond, that of the exact gradient.

    Linear layers: dimension 0 of the input is the sample, the middle ones are its positions; for
    input (N, C) the rows of the batch are the positions of a single sample.

    Args:
        draws: m, >= 1.
        score: "gradient", or "gradient_patch", which costs a pass over the input; patch norms are
            those of all channel groups together.
        keep_top: keep the largest entry for certain.

    Raises:
        ConfigError: a value that is not allowed.

    References:
        Drineas, Kannan, Mahoney (2006), "Fast Monte Carlo algorithms for matrices I"; Hansen and
        Hurwitz (1943) for the weights.

    >>> x = torch.ones(1, 1, 2, 2)
    >>> grad_out = torch.tensor([[[[1.0, 3.0], [2.0, 2.0]]]])
    >>> geometry = LayerGeometry("conv2d", (1, 1, 1, 1))
    >>> PatchSampling().weight_grad(x, grad_out, geometry, key=0).item()
    8.0
    """

    draws: int = 1
    score: Literal["gradient", "gradient_patch"] = "gradient"
    keep_top: bool = False

    name: ClassVar[str] = "patchsampling"
    unbiased: ClassVar[bool] = True
    needs_key: ClassVar[bool] = True

    def __post_init__(self) -> None:
        check_number("PatchSampling", "draws", self.draws, 1)
        check_choice("PatchSampling", "score", self.score, ("gradient", "gradient_patch"))
        check_switch("PatchSampling", "keep_top", self.keep_top)

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
        flat = maps.grad_out.flatten(2)
        scores = flat.abs()
        top = scores.argmax(2, keepdim=True) if self.keep_top else None
        if self.score == "gradient_patch":
            scores *= patch_norms(maps).view(len(flat), 1, -1)
        if top is not None:
            scores.scatter_(2, top, 0.0)
        start = torch.from_numpy(numpy_generator(key).random(flat.shape[:2])[:, :, None])
        places, values = _drawn(flat, scores, start, self.draws)
        if top is not None:
            places = torch.cat([top, places], 2)
            values = torch.cat([flat.gather(2, top), values], 2)
        estimate = weight_grad_at(maps, places, values)
        return estimate.reshape(geometry.weight_shape).to(grad_out.dtype)

    def cost(self, geometry: LayerGeometry, grad_out_shape: tuple[int, ...]) -> WeightGradCost:
        """One patch for each entry; all of the exact gradient beyond three a map."""
        exact = geometry.weight_grad_macs(grad_out_shape)
        count = self.draws + self.keep_top
        return WeightGradCost(places_macs(geometry, grad_out_shape, count), exact_macs=exact)


def _drawn(
    flat: torch.Tensor, scores: torch.Tensor, start: torch.Tensor, draws: int
) -> tuple[torch.Tensor, torch.Tensor]:
    """Places (N, K, draws) and g_p / (draws q_p), zero for a map without any score."""
    reached = scores.cumsum(2)
    total = reached[:, :, -1:].contiguous()
    parts = (start + torch.arange(draws, dtype=torch.float64)) / draws
    wanted = parts.clamp_(max=_LAST).to(scores) * total
    places = torch.searchsorted(reached.contiguous(), wanted, right=True)
    places = places.clamp_(max=flat.shape[2] - 1)
    weights = total / (scores.gather(2, places) * draws)
    return places, torch.where(total == 0, 0, flat.gather(2, places) * weights)
