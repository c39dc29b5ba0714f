"""Weight gradients from listed output positions, and the choice of positions, in plain torch."""

from __future__ import annotations

import torch
from torch.nn import functional as F

Pair = tuple[int, int]


def patches(
    x: torch.Tensor, kernel_size: Pair, stride: Pair, padding: Pair, dilation: Pair
) -> torch.Tensor:
    """(N P Q, C R S): the zero-padded input patch that every output position sees."""
    columns = F.unfold(
        x.contiguous(), kernel_size, dilation=dilation, padding=padding, stride=stride
    )
    return columns.transpose(1, 2).flatten(0, 1)


def gradient_rows(grad_out: torch.Tensor) -> torch.Tensor:
    """(N P Q, K): the output gradient of every position."""
    return grad_out.permute(0, 2, 3, 1).flatten(0, 2)


def position_weight_grad(
    x: torch.Tensor,
    grad_out: torch.Tensor,
    rows: torch.Tensor | None,
    weights: torch.Tensor | None,
    means: torch.Tensor | None,
    kernel_size: Pair,
    stride: Pair,
    padding: Pair,
    dilation: Pair,
    groups: int,
) -> torch.Tensor:
    """The definition of :func:`slimgrad.kernels.position_weight_grad`; sums in float32 at least."""
    work = torch.promote_types(x.dtype, torch.float32)
    seen = patches(x.to(work), kernel_size, stride, padding, dilation)
    g = grad_out.to(work)
    if means is not None:
        g = g - means.to(work)[:, :, None, None]
    g = gradient_rows(g)
    if rows is not None:
        seen, g = seen[rows.long()], g[rows.long()]
    if weights is not None:
        g = g * weights.to(work)[:, None]
    filters, width = grad_out.shape[1], x.shape[1] // groups
    seen = seen.view(len(seen), groups, width * kernel_size[0] * kernel_size[1])
    by_group = torch.einsum("rgk,rgf->gkf", g.view(len(g), groups, filters // groups), seen)
    return by_group.reshape(filters, width, *kernel_size).to(x.dtype)


def systematic_sample(
    scores: torch.Tensor, wanted: float, start: float
) -> tuple[torch.Tensor, torch.Tensor]:
    """The definition of :func:`slimgrad.kernels.systematic_sample`, one position at a time."""
    threshold = _threshold(scores.double(), wanted)
    rows: list[int] = []
    weights: list[float] = []
    if threshold > 0:
        inverse, reached = 1.0 / threshold, start
        for row, score in enumerate(scores.double().tolist()):
            if score >= threshold:
                rows.append(row)
                weights.append(1.0)
                continue
            reached += score * inverse
            if reached >= 1.0:
                reached -= 1.0
                rows.append(row)
                weights.append(threshold / score)
    return torch.tensor(rows, dtype=torch.int32), torch.tensor(weights, dtype=torch.float32)


def _sum(values: torch.Tensor) -> float:
    """Sum in eight lanes and what is left over, added in order."""
    lanes = [0.0] * 8
    whole = len(values) // 8 * 8
    for place, value in enumerate(values.tolist()):
        lanes[place % 8 if place < whole else 0] += value
    total = 0.0
    for lane in lanes:
        total += lane
    return total


def _threshold(scores: torch.Tensor, wanted: float) -> float:
    threshold = _sum(scores) / wanted
    for _ in range(64):
        certain = scores >= threshold
        left = wanted - int(certain.sum())
        rest = _sum(torch.where(certain, 0.0, scores))
        if left <= 0 or rest <= 0:
            break
        lower = rest / left
        close = not lower < 0.99 * threshold
        threshold = min(threshold, lower)
        if close:
            break
    return threshold


def row_norms(grad_out: torch.Tensor) -> torch.Tensor:
    """Euclidean norm of the output gradient of every position, (N P Q,)."""
    return gradient_rows(grad_out).norm(dim=1)


def centred_row_norms(grad_out: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
    """Mean output gradient of every sample, (N, K), and the norms about it, (N P Q,)."""
    means = grad_out.mean((2, 3))
    return means, row_norms(grad_out - means[:, :, None, None])


def patch_sums(
    x: torch.Tensor, kernel_size: Pair, stride: Pair, padding: Pair, dilation: Pair
) -> torch.Tensor:
    """Sum over positions of every sample's patches, (N, C, R, S)."""
    seen = patches(x, kernel_size, stride, padding, dilation)
    return seen.view(len(x), -1, x.shape[1], *kernel_size).sum(1)
