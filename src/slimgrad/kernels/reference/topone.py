"""The top-1 filter gradient in plain torch."""

from __future__ import annotations

import torch
from torch.nn import functional as F

Pair = tuple[int, int]


def topone_weight_grad(
    x: torch.Tensor,
    grad_out: torch.Tensor,
    kernel_size: Pair,
    stride: Pair,
    padding: Pair,
    dilation: Pair,
    groups: int,
    scale: float,
) -> torch.Tensor:
    """Sum over samples of the patch at each map's largest magnitude, times the map's sum.

    The definition is that of :func:`slimgrad.kernels.topone_weight_grad`, one sample at a time.
    Sums are taken in float32, or in float64 for float64 input.

    Returns:
        (K, C / groups, R, S), contiguous, in the dtype of ``grad_out``.

    >>> x, grad_out = torch.ones(1, 1, 2, 2), torch.tensor([[[[3.0, -4.0], [0.0, 0.0]]]])
    >>> topone_weight_grad(x, grad_out, (1, 1), (1, 1), (0, 0), (1, 1), 1, 1.0)
    tensor([[[[-1.]]]])
    """
    samples, filters = grad_out.shape[:2]
    taps, width = kernel_size[0] * kernel_size[1], x.shape[1] // groups
    work = torch.promote_types(grad_out.dtype, torch.float32)

    def patches(image: torch.Tensor) -> torch.Tensor:
        return F.unfold(
            image.contiguous(), kernel_size, dilation=dilation, padding=padding, stride=stride
        )

    maps = grad_out.to(work).flatten(2)
    place = maps.abs().argmax(dim=2)  # the first of equals; NaN is above everything
    weight = scale * maps.sum(dim=2)
    # Taps that see the padding add nothing, not even infinity times zero.
    inside = patches(x.new_ones((1, 1, *x.shape[2:]), dtype=work)) != 0
    inside = inside.expand(width, -1, -1).reshape(1, width * taps, -1).expand(groups, -1, -1)

    total = torch.zeros(groups, width * taps, filters // groups, dtype=work, device=x.device)
    for n in range(samples):
        columns = patches(x[n : n + 1].to(work)).reshape(groups, width * taps, -1)
        index = place[n].reshape(groups, 1, -1).expand(-1, width * taps, -1)
        factor = weight[n].reshape(groups, 1, -1)
        seen = inside.gather(2, index) & (factor != 0)
        total += torch.where(seen, factor * columns.gather(2, index), 0.0)
    shape = (filters, width, *kernel_size)
    return total.transpose(1, 2).reshape(shape).contiguous().to(grad_out.dtype)
