"""Loss and accuracy over a whole test split, shared among the ranks."""

from __future__ import annotations

import math

import torch
import torch.nn.functional as F
from torch import nn

from slimgrad.experiments.group import Group


@torch.no_grad()
def evaluate(
    model: nn.Module, batches: list[tuple[torch.Tensor, torch.Tensor]], group: Group
) -> tuple[float, float]:
    """Mean test loss and share of test images classified rightly, the same on every rank.

    Each rank counts its own images; counts are integers, and losses are summed in float64 in the
    order of the ranks, so no image counts twice and every rank computes the same number.

    Args:
        model: network, bare; put back into training mode afterwards.
        batches: this rank's images and labels.
        group: the ranks.
    """
    model.eval()
    loss, right, count = 0.0, 0, 0
    for images, labels in batches:
        scores = model(images)
        loss += float(F.cross_entropy(scores.double(), labels, reduction="sum"))
        right += int((scores.argmax(1) == labels).sum())
        count += labels.numel()
    model.train()
    sums = group.gather(torch.tensor([loss, right, count], dtype=torch.float64))
    losses, rights, counts = (list(map(float, column)) for column in zip(*sums, strict=True))
    total = math.fsum(counts)
    return sum(losses) / total, math.fsum(rights) / total
