"""The weight gradient from the largest entries of every output map."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar, final

import torch

from slimgrad.approx.estimators.base import GradientEstimator, LayerGeometry, WeightGradCost
from slimgrad.approx.estimators.maps import as_maps
from slimgrad.approx.estimators.places import places_macs, weight_grad_at
from slimgrad.approx.estimators.settings import check_number


@final
@dataclass(frozen=True)
class TopK(GradientEstimator):
    r"""Keeps the k entries of largest magnitude of every (sample, filter) map, at their values.

    A_o = sum over samples n and the k largest p of |g_{n o p}| of g_{n o p} X_{n p}. Biased, by
    minus the same sum over all other p, which has norm at most
    sum |g_{n o p}| ||X_{n p}|| over them. Other than :class:`~slimgrad.TopOne` it gives no entry
    the weight of the whole map. Maps of k positions and fewer are exact. Which of equal magnitudes
    are kept is not defined; NaN counts as the largest.

    Up to k = 3 the work is that of k entries a map; beyond, that of the exact gradient: a baseline
    of quality, not of speed.

    Linear layers: dimension 0 of the input is the sample, the middle ones are its positions; for
    input (N, C) the rows of the batch are the positions of a single sample.

    Args:
        k: entries of each map, >= 1.

    Raises:
        ConfigError: a value that is not allowed.

    References:
        Stich, Cordonnier, Jaggi (2018), "Sparsified SGD with memory", for top-k as an operator;
        Wang, Nelaturu, Amarasinghe (2019) for its use on output maps.

    >>> x = torch.arange(1.0, 5.0).reshape(1, 1, 2, 2)
    >>> grad_out = torch.tensor([[[[1.0, -3.0], [2.0, 0.5]]]])
    >>> TopK(2).weight_grad(x, grad_out, LayerGeometry("conv2d", (1, 1, 1, 1)), key=0).item()
    0.0
    """

    k: int = 2

    name: ClassVar[str] = "topk"
    unbiased: ClassVar[bool] = False

    def __post_init__(self) -> None:
        check_number("TopK", "k", self.k, 1)

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
        places = flat.abs().topk(min(self.k, maps.positions), sorted=False).indices
        estimate = weight_grad_at(maps, places, flat.gather(2, places))
        return estimate.reshape(geometry.weight_shape).to(grad_out.dtype)

    def cost(self, geometry: LayerGeometry, grad_out_shape: tuple[int, ...]) -> WeightGradCost:
        """K patches for each map; all of the exact gradient beyond k = 3."""
        exact = geometry.weight_grad_macs(grad_out_shape)
        return WeightGradCost(places_macs(geometry, grad_out_shape, self.k), exact_macs=exact)
