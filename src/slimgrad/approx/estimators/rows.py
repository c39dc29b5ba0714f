"""Sums over chosen output positions, with a part of the gradient computed exactly."""

from __future__ import annotations

from typing import Literal

import torch

from slimgrad import kernels
from slimgrad.approx.estimators.base import LayerGeometry
from slimgrad.approx.estimators.maps import Maps

Means = Literal["none", "batch", "sample"]
MEANS: tuple[Means, ...] = ("none", "batch", "sample")


def weighted_rows(
    maps: Maps,
    rows: torch.Tensor,
    weights: torch.Tensor,
    kind: Means,
    means: torch.Tensor | None = None,
) -> torch.Tensor:
    """Weighted sum of g_r X_r^T over rows, corrected by what the means give exactly.

    With weights of mean 1 over the draws, the result has the mean G for every kind: the correction
    is (mean of the sampled factor - the factor drawn) times a fixed patch.

    Args:
        maps: the layer.
        rows: int32, ascending, in [0, N P Q).
        weights: float32, one a row.
        kind: "none"; "batch", the mean patch of the batch; "sample", means of every sample.
        means: (N, K), the mean gradients of the samples; given exactly where kind is "sample".

    Returns:
        (K, C / groups, R, S).
    """
    rows, weights = rows.to(maps.x.device), weights.to(maps.x.device)
    estimate = kernels.position_weight_grad(
        maps.x,
        maps.grad_out,
        groups=maps.groups,
        rows=rows,
        weights=weights,
        means=means,
        **maps.convolution,
    )
    if kind == "sample":
        assert means is not None
        sampled = sampled_sums(maps, rows, weights, means)
        add_mean_patches_(estimate, maps, means * maps.positions - sampled)
    elif kind == "batch":
        missing = maps.grad_out.sum((0, 2, 3)) - sampled_sums(maps, rows, weights, None).sum(0)
        add_mean_patches_(estimate, maps, missing[None])
    return estimate


def mean_macs(kind: Means, geometry: LayerGeometry, grad_out_shape: tuple[int, ...]) -> int:
    """Multiply-adds of the exact part: one patch a sample ("sample") or a batch ("batch")."""
    samples = grad_out_shape[0] if len(grad_out_shape) > 2 else 1
    patches = {"none": 0, "batch": 1, "sample": samples}[kind]
    return geometry.weight_grad_macs((patches, geometry.weight_shape[0]))


def sampled_sums(
    maps: Maps, rows: torch.Tensor, weights: torch.Tensor, means: torch.Tensor | None
) -> torch.Tensor:
    """For each sample the weighted sum of its kept output gradients, less ``means``, (N, K)."""
    table = maps.grad_out.permute(0, 2, 3, 1).reshape(maps.rows, -1)
    samples = torch.div(rows, maps.positions, rounding_mode="floor").long()
    kept = table[rows.long()]
    if means is not None:
        kept = kept - means[samples]
    sums = kept.new_zeros(len(maps.x), kept.shape[1])
    return sums.index_add_(0, samples, kept * weights.to(kept.dtype)[:, None])


def add_mean_patches_(estimate: torch.Tensor, maps: Maps, factors: torch.Tensor) -> None:
    """Add sum over samples n of factors_n times the mean patch of n; of the batch if one row."""
    sums = kernels.patch_sums(maps.x, **maps.convolution)
    patches = sums / maps.positions if len(factors) > 1 else sums.sum(0, keepdim=True) / maps.rows
    filters, width = estimate.shape[:2]
    if maps.groups == 1:
        # In the order channels last, which the sums have and the estimate usually has.
        flat = patches.permute(0, 2, 3, 1).flatten(1)
        inner = estimate.permute(0, 2, 3, 1)
        if inner.is_contiguous():
            inner.view(filters, -1).addmm_(factors.t(), flat)
        else:
            inner.add_((factors.t() @ flat).view(inner.shape))
        return
    grouped = patches.view(len(patches), maps.groups, width, *maps.kernel_size)
    by_group = factors.view(len(factors), maps.groups, filters // maps.groups)
    product = torch.einsum("ngk,ngcrs->gkcrs", by_group, grouped)
    estimate.add_(product.reshape(estimate.shape))
