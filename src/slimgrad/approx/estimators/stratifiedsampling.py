"""The weight gradient from one output position of every stratum."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar, final

import numpy as np
import torch

from slimgrad.approx.estimators.base import GradientEstimator, LayerGeometry, WeightGradCost
from slimgrad.approx.estimators.exact import exact_weight_grad
from slimgrad.approx.estimators.maps import as_maps
from slimgrad.approx.estimators.rows import MEANS, Means, mean_macs, weighted_rows
from slimgrad.approx.estimators.settings import check_choice, check_share, check_switch
from slimgrad.core.rng import numpy_generator


@final
@dataclass(frozen=True)
class StratifiedSampling(GradientEstimator):
    r"""Draws one output position of every run of neighbours, all of them equally likely.

    The R positions, in the order (sample, row, column), are cut into M = round(keep R) strata of
    R / M positions (sizes differ by at most one). From each stratum s of size L_s one position r_s
    is drawn uniformly: A = sum over s of L_s g_{r_s} X_{r_s}^T. ``means`` computes a part exactly,
    as in :class:`~slimgrad.RowSampling`.

    Guarantee: unbiased, E A = G. Without means and with independent draws the variance is
    sum_s (L_s sum_{r in s} ||g_r||^2 ||X_r||^2 - ||sum_{r in s} g_r X_r^T||^2). With
    ``common_phase`` and strata of one size L it is L sum_i ||D_i||^2 - ||G||^2, where D_i is the
    sum over the i-th positions of all strata.

    The draw looks at no tensor, so it costs nothing beside the sum; positions that matter are
    missed as often as others, and a value that is not finite shows only where it is drawn (or in
    the means). :class:`~slimgrad.RowSampling` draws by importance.

    Linear layers: dimension 0 of the input is the sample, the middle ones are its positions; for
    input (N, C) the rows of the batch are the positions.

    Args:
        keep: share of positions kept, 0 < keep <= 1; 1 is exact.
        means: "none", "batch" or "sample".
        common_phase: draw one place for all strata, rather than one for each.

    Raises:
        ConfigError: a value that is not allowed.

    References:
        Cochran (1977), "Sampling Techniques", chapters 5 and 8.

    >>> x, grad_out = torch.ones(8, 2), torch.ones(8, 1)
    >>> geometry = LayerGeometry("linear", (1, 2))
    >>> StratifiedSampling(keep=0.25).weight_grad(x, grad_out, geometry, key=1).tolist()
    [[8.0, 8.0]]
    """

    keep: float = 0.25
    means: Means = "none"
    common_phase: bool = False

    name: ClassVar[str] = "stratifiedsampling"
    unbiased: ClassVar[bool] = True
    needs_key: ClassVar[bool] = True

    def __post_init__(self) -> None:
        check_share("StratifiedSampling", "keep", self.keep)
        check_choice("StratifiedSampling", "means", self.means, MEANS)
        check_switch("StratifiedSampling", "common_phase", self.common_phase)

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
        maps = as_maps(x, grad_out, geometry)
        strata = max(1, round(self.keep * maps.rows))
        draws = numpy_generator(key).random(1 if self.common_phase else strata)
        rows, weights = one_of_each(maps.rows, strata, draws)
        means = maps.grad_out.mean((2, 3)) if self.means == "sample" else None
        estimate = weighted_rows(maps, rows, weights, self.means, means)
        return estimate.reshape(geometry.weight_shape).to(grad_out.dtype)

    def cost(self, geometry: LayerGeometry, grad_out_shape: tuple[int, ...]) -> WeightGradCost:
        """The kept share, and one patch a sample ("sample") or a batch ("batch")."""
        exact = geometry.weight_grad_macs(grad_out_shape)
        macs = round(self.keep * exact) + mean_macs(self.means, geometry, grad_out_shape)
        return WeightGradCost(macs=min(exact, macs), exact_macs=exact)


def one_of_each(total: int, strata: int, draws: np.ndarray) -> tuple[torch.Tensor, torch.Tensor]:
    """Rows, int32, one of each of ``strata`` runs of 0 .. total - 1, and the runs' sizes, float32.

    >>> rows, sizes = one_of_each(5, 2, np.array([0.0, 0.9]))
    >>> rows.tolist(), sizes.tolist()
    ([0, 4], [2.0, 3.0])
    """
    edges = np.arange(strata + 1) * total // strata
    sizes = np.diff(edges)
    rows = edges[:-1] + (draws * sizes).astype(np.int64)
    return torch.from_numpy(rows.astype(np.int32)), torch.from_numpy(sizes.astype(np.float32))
