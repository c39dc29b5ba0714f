"""The weight gradient from one position of every output map."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import ClassVar, final

import torch

from slimgrad import kernels
from slimgrad.approx.estimators.base import GradientEstimator, LayerGeometry, WeightGradCost
from slimgrad.approx.estimators.exact import exact_weight_grad
from slimgrad.approx.estimators.maps import as_maps
from slimgrad.approx.estimators.settings import check_scale


@final
@dataclass(frozen=True)
class TopOne(GradientEstimator):
    """Keeps, of every (sample, filter) map, the position of largest magnitude.

    A[o] = scale * sum_b S[b, o] * X[b, p*(b, o)] with p*(b, o) = argmax_p |grad_out[b, o, p]| (the
    first of equals) and S[b, o] = sum_p grad_out[b, o, p], the signed sum of the map. Biased, by
    sum_{b, p} grad_out[b, o, p] (X[b, p*] - X[b, p]) at scale 1. Behind training-mode batch
    normalisation the sums S of a filter cancel over the batch, and A may point away from G.

    Linear layers with input (N, T, ..., C): dimension 0 is the sample, the middle dimensions are
    its positions. With input (N, C) a sample has one position, so the result is scale times the
    exact gradient and nothing is saved.

    Args:
        scale: factor on the estimate, > 0. 1 suits a loss averaged over the batch; the paper's
            kernel divides once more by its batch size, which is ``scale=1 / 128``.

    References:
        Z. Wang, S. H. Nelaturu, S. Amarasinghe: Accelerated CNN Training Through Gradient
        Approximation, EMC2 2019 ("approximated gradient").

    >>> x = torch.arange(1.0, 10.0).reshape(1, 1, 3, 3)
    >>> grad_out = torch.tensor([[[[1.0, 0, 0], [0, -3, 0], [0, 0, 1]]]])
    >>> geometry = LayerGeometry("conv2d", (1, 1, 3, 3), padding=(1, 1))
    >>> TopOne().weight_grad(x, grad_out, geometry, key=0).flatten().tolist()
    [-1.0, -2.0, -3.0, -4.0, -5.0, -6.0, -7.0, -8.0, -9.0]
    """

    scale: float = 1.0

    name: ClassVar[str] = "topone"
    unbiased: ClassVar[bool] = False
    _scale_text: str = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        check_scale("TopOne", self.scale)
        # torch.compile makes an input of any float that changed, and fails on one that only the
        # backward pass reads; a text it takes as it is.
        object.__setattr__(self, "_scale_text", repr(float(self.scale)))

    def weight_grad(
        self,
        x: torch.Tensor | None,
        grad_out: torch.Tensor,
        geometry: LayerGeometry,
        key: int,
    ) -> torch.Tensor:
        """A; half-precision tensors are summed in float32 and rounded once."""
        assert x is not None
        if grad_out.numel() == 0:
            return grad_out.new_zeros(geometry.weight_shape)
        scale = float(self._scale_text)
        if geometry.kind == "linear" and x.dim() == 2:
            return exact_weight_grad(x, grad_out, geometry).mul_(scale)
        maps = as_maps(x, grad_out, geometry)
        estimate = kernels.topone_weight_grad(
            maps.x, maps.grad_out, groups=maps.groups, scale=scale, **maps.convolution
        )
        return estimate.reshape(geometry.weight_shape).to(grad_out.dtype)

    def cost(self, geometry: LayerGeometry, grad_out_shape: tuple[int, ...]) -> WeightGradCost:
        """One patch for each (sample, filter) map, whatever the size of the map."""
        exact = geometry.weight_grad_macs(grad_out_shape)
        samples = grad_out_shape[0]
        patches = geometry.weight_grad_macs((samples, geometry.weight_shape[0]))
        return WeightGradCost(macs=min(patches, exact), exact_macs=exact)
