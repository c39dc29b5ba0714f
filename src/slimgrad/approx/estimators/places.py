"""Gradients with few entries in every map, and the weight gradient they give."""

from __future__ import annotations

import torch

from slimgrad import kernels
from slimgrad.approx.estimators.base import LayerGeometry
from slimgrad.approx.estimators.maps import Maps

# The top-1 kernel takes about a fifth of the dense product, for one place of every map.
_FEW = 3


def weight_grad_at(maps: Maps, places: torch.Tensor, values: torch.Tensor) -> torch.Tensor:
    """Sum over samples and listed places of value times the input patch of the place.

    Args:
        maps: the layer.
        places: int64 (N, K, m), positions in [0, P Q) of every map; one may come twice.
        values: (N, K, m), dtype of the maps.

    Returns:
        (K, C / groups, R, S).
    """
    if places.shape[2] <= _FEW:
        parts = zip(places.split(1, 2), values.split(1, 2), strict=True)
        # A map with a single entry: its largest magnitude is its sum.
        estimates = [
            kernels.topone_weight_grad(
                maps.x, _scattered(maps, *part), groups=maps.groups, **maps.convolution
            )
            for part in parts
        ]
        return torch.stack(estimates).sum(0) if len(estimates) > 1 else estimates[0]
    return kernels.position_weight_grad(
        maps.x, _scattered(maps, places, values), groups=maps.groups, **maps.convolution
    )


def _scattered(maps: Maps, places: torch.Tensor, values: torch.Tensor) -> torch.Tensor:
    zeros = torch.zeros(maps.grad_out.flatten(2).shape, dtype=values.dtype, device=values.device)
    return zeros.scatter_add_(2, places, values).view(maps.grad_out.shape)


def places_macs(geometry: LayerGeometry, grad_out_shape: tuple[int, ...], count: int) -> int:
    """Multiply-adds of :func:`weight_grad_at` with ``count`` places in every map."""
    exact = geometry.weight_grad_macs(grad_out_shape)
    samples = grad_out_shape[0] if len(grad_out_shape) > 2 else 1
    few = count * geometry.weight_grad_macs((samples, geometry.weight_shape[0]))
    return min(few, exact) if count <= _FEW else exact
