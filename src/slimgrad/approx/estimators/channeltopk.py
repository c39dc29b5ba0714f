"""The weight gradient of the filters with the largest output gradients."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import ClassVar, final

import torch

from slimgrad.approx.estimators.base import GradientEstimator, LayerGeometry, WeightGradCost
from slimgrad.approx.estimators.exact import exact_weight_grad
from slimgrad.approx.estimators.settings import check_share, count_of_share


@final
@dataclass(frozen=True)
class ChannelTopK(GradientEstimator):
    r"""Computes the gradient of the filters whose output gradient is largest; zero for the others.

    Filter o has the score mean over samples and positions of |g_{n o p}|. The round(keep K)
    filters, at least one, of the largest scores get their exact gradient, all others zero. With
    channel groups, round(keep K / groups), at least one, of each group. Biased, by minus the
    gradient of the filters left out, whose weights then move by momentum and weight decay alone.
    The input gradient stays exact, where the original method drops these channels too.

    Which of equal scores are kept is not defined; NaN counts as the largest.

    Args:
        keep: share of filters, 0 < keep <= 1; 1 is exact.

    Raises:
        ConfigError: a value that is not allowed.

    References:
        Zhong, Huang, Shi (2024), "ssProp: Energy-efficient training for convolutional neural
        networks with scheduled sparse back propagation", section 3.

    >>> x, grad_out = torch.ones(2, 2), torch.tensor([[1.0, -4.0], [3.0, 2.0]])
    >>> ChannelTopK(0.5).weight_grad(x, grad_out, LayerGeometry("linear", (2, 2)), key=0).tolist()
    [[0.0, 0.0], [-2.0, -2.0]]
    """

    keep: float = 0.2

    name: ClassVar[str] = "channeltopk"
    unbiased: ClassVar[bool] = False
    _keep_text: str = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        check_share("ChannelTopK", "keep", self.keep)
        object.__setattr__(self, "_keep_text", repr(float(self.keep)))

    def weight_grad(
        self,
        x: torch.Tensor | None,
        grad_out: torch.Tensor,
        geometry: LayerGeometry,
        key: int,
    ) -> torch.Tensor:
        """A."""
        assert x is not None
        if grad_out.numel() == 0:
            return grad_out.new_zeros(geometry.weight_shape)
        axis = 1 if geometry.kind == "conv2d" else grad_out.dim() - 1
        others = [d for d in range(grad_out.dim()) if d != axis]
        scores = grad_out.abs().mean(others, dtype=torch.float32).view(geometry.groups, -1)
        width = scores.shape[1]
        kept = scores.topk(count_of_share(self._keep_text, width), sorted=False).indices
        first = torch.arange(geometry.groups, device=kept.device)[:, None] * width
        filters = (kept + first).flatten()
        shape = (len(filters), *geometry.weight_shape[1:])
        part = exact_weight_grad(
            x, grad_out.index_select(axis, filters), replace(geometry, weight_shape=shape)
        )
        return part.new_zeros(geometry.weight_shape).index_copy_(0, filters, part)

    def cost(self, geometry: LayerGeometry, grad_out_shape: tuple[int, ...]) -> WeightGradCost:
        """The share of filters kept."""
        exact = geometry.weight_grad_macs(grad_out_shape)
        width = geometry.weight_shape[0] // geometry.groups
        macs = exact * count_of_share(self._keep_text, width) // width
        return WeightGradCost(macs=macs, exact_macs=exact)
