"""The weight gradient from some samples of the batch."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar, Literal, final

import torch

from slimgrad import kernels
from slimgrad.approx.estimators.base import GradientEstimator, LayerGeometry, WeightGradCost
from slimgrad.approx.estimators.exact import exact_weight_grad
from slimgrad.approx.estimators.settings import check_choice, check_share
from slimgrad.core.rng import numpy_generator


@final
@dataclass(frozen=True)
class SampleSampling(GradientEstimator):
    r"""Draws whole samples of the batch.

    With G_n the weight gradient of sample n, G = sum_n G_n. Sample n is kept with probability
    p_n = min(1, score_n / t) and weighted by 1 / p_n, where t makes the expected share of kept
    samples ``keep``: A = sum over kept n of G_n / p_n. Samples are drawn systematically, in their
    order.

    Guarantee: unbiased, E A = G. Were samples drawn independently, the variance would be
    sum_n (1 / p_n - 1) ||G_n||^2; systematic draws of a shuffled batch come near it. With score
    "uniform" and 1 / keep = q dividing N it is q sum_i ||D_i||^2 - ||G||^2, where D_i is the sum
    of G_n over n = i, i + q, i + 2 q, ...

    Usually noisier than :class:`~slimgrad.RowSampling` of the same share, which chooses among
    positions, but all it needs is a stock operation on a smaller batch. With score "uniform" a
    value that is not finite shows only if its sample is drawn.

    Args:
        keep: expected share of samples kept, 0 < keep <= 1; 1 is exact.
        score: "gradient" for the norm of the sample's output gradient, or "uniform".

    Raises:
        ConfigError: a value that is not allowed.

    References:
        Katharopoulos and Fleuret (2018), "Not all samples are created equal"; Madow (1949) for
        systematic draws.

    >>> x, grad_out = torch.arange(6.0).reshape(3, 2), torch.tensor([[1.0], [0.0], [0.0]])
    >>> geometry = LayerGeometry("linear", (1, 2))
    >>> SampleSampling(keep=0.4).weight_grad(x, grad_out, geometry, key=1).tolist()
    [[0.0, 1.0]]
    """

    keep: float = 0.5
    score: Literal["gradient", "uniform"] = "gradient"

    name: ClassVar[str] = "samplesampling"
    unbiased: ClassVar[bool] = True
    needs_key: ClassVar[bool] = True

    def __post_init__(self) -> None:
        check_share("SampleSampling", "keep", self.keep)
        check_choice("SampleSampling", "score", self.score, ("gradient", "uniform"))

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
        uniform = self.score == "uniform"
        scores = torch.ones(len(x)) if uniform else sample_norms(grad_out).cpu()
        start = float(numpy_generator(key).random())
        samples, weights = kernels.systematic_sample(scores, self.keep * len(x), start)
        x, kept = (_take(t, samples.to(t.device)) for t in (x, grad_out))
        kept *= weights.to(kept).view(-1, *[1] * (kept.dim() - 1))
        return exact_weight_grad(x, kept, geometry).to(grad_out.dtype)

    def cost(self, geometry: LayerGeometry, grad_out_shape: tuple[int, ...]) -> WeightGradCost:
        """The kept share."""
        exact = geometry.weight_grad_macs(grad_out_shape)
        return WeightGradCost(macs=round(self.keep * exact), exact_macs=exact)


def _is_channels_last(tensor: torch.Tensor) -> bool:
    return tensor.dim() == 4 and tensor.is_contiguous(memory_format=torch.channels_last)


def sample_norms(grad_out: torch.Tensor) -> torch.Tensor:
    """Norm of the output gradient of every sample, float32 (N,).

    >>> sample_norms(torch.tensor([[3.0, 4.0], [0.0, 1.0]])).tolist()
    [5.0, 1.0]
    """
    laid_out = grad_out.permute(0, 2, 3, 1) if _is_channels_last(grad_out) else grad_out
    return kernels.row_norms(laid_out.flatten(1)[:, :, None, None])


def _take(tensor: torch.Tensor, samples: torch.Tensor) -> torch.Tensor:
    """Samples of a tensor, in its layout and float32 at least; a copy."""
    if _is_channels_last(tensor):
        taken = tensor.permute(0, 2, 3, 1).index_select(0, samples).permute(0, 3, 1, 2)
    else:
        taken = tensor.index_select(0, samples)
    return taken.float() if taken.dtype in (torch.bfloat16, torch.float16) else taken
