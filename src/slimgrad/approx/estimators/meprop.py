"""The weight gradient from the largest output gradients of every sample."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import ClassVar, final

import torch

from slimgrad.approx.estimators.base import GradientEstimator, LayerGeometry, WeightGradCost
from slimgrad.approx.estimators.exact import exact_weight_grad
from slimgrad.approx.estimators.settings import check_share, count_of_share


@final
@dataclass(frozen=True)
class MeProp(GradientEstimator):
    r"""Keeps the share of largest magnitude of each sample's output gradient, at its values.

    A = sum over samples n and kept (o, p) of g_{n o p} X_{n p} in the row of filter o; kept are
    the round(keep K P Q) entries, at least one, of largest |g_{n o p}|. Biased, by minus the sum
    over the entries left out. The input gradient stays exact, where the original method thins it
    out too.

    A baseline of quality: the thinned gradient is multiplied as a dense one, so nothing is saved.

    Dimension 0 of the input is the sample, also in linear layers. Which of equal magnitudes are
    kept is not defined; NaN counts as the largest.

    Args:
        keep: share of entries, 0 < keep <= 1; 1 is exact.

    Raises:
        ConfigError: a value that is not allowed.

    References:
        Sun, Ren, Ma, Wang (2017), "meProp: Sparsified back propagation for accelerated deep
        learning with reduced overfitting", section 2.

    >>> x, grad_out = torch.ones(2, 2), torch.tensor([[1.0, -4.0], [3.0, 2.0]])
    >>> MeProp(0.5).weight_grad(x, grad_out, LayerGeometry("linear", (2, 2)), key=0).tolist()
    [[3.0, 3.0], [-4.0, -4.0]]
    """

    keep: float = 0.05

    name: ClassVar[str] = "meprop"
    unbiased: ClassVar[bool] = False
    _keep_text: str = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        check_share("MeProp", "keep", self.keep)
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
        flat = grad_out.flatten(1)
        kept = flat.abs().topk(count_of_share(self._keep_text, flat.shape[1]), sorted=False).indices
        thinned = torch.zeros_like(flat).scatter_(1, kept, flat.gather(1, kept))
        return exact_weight_grad(x, thinned.view(grad_out.shape), geometry)

    def cost(self, geometry: LayerGeometry, grad_out_shape: tuple[int, ...]) -> WeightGradCost:
        """All multiply-adds of the exact gradient."""
        exact = geometry.weight_grad_macs(grad_out_shape)
        return WeightGradCost(macs=exact, exact_macs=exact)
