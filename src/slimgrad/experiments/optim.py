"""Optimizers and the learning rate as a pure function of the step."""

from __future__ import annotations

import math
from collections.abc import Collection

import torch
from torch import nn

from slimgrad.experiments.config import OptimizerConfig

_RISE = 0.3  # share of a one-cycle run in which the learning rate rises
_START = 0.04  # where it starts, as a share of the highest


def learning_rate(config: OptimizerConfig, step: int, steps: int, steps_per_epoch: int) -> float:
    """Learning rate of one step.

    Args:
        config: highest rate and schedule.
        step: from 0.
        steps: steps of the whole run.
        steps_per_epoch: steps of one epoch, for the warm-up.

    >>> cosine = OptimizerConfig(lr=0.2)
    >>> [round(learning_rate(cosine, step, 10, 5), 3) for step in (0, 5, 9)]
    [0.2, 0.1, 0.005]
    """
    highest = config.highest_lr
    if config.lr_schedule == "one_cycle":
        rise = max(1.0, _RISE * steps)
        if step < rise:
            return highest * (_START + (1 - _START) * step / rise)
        return highest * _half_cosine((step - rise) / (steps - rise))
    warmup = config.warmup_epochs * steps_per_epoch
    if step < warmup:
        return highest * (step + 1) / (warmup + 1)
    if config.lr_schedule == "constant":
        return highest
    return highest * _half_cosine((step - warmup) / max(1.0, steps - warmup))


def _half_cosine(share: float) -> float:
    return 0.5 * (1 + math.cos(math.pi * min(share, 1.0)))


def make_optimizer(
    config: OptimizerConfig, model: nn.Module, *, without_momentum: Collection[str] = ()
) -> torch.optim.Optimizer:
    """The optimizer over all parameters of ``model``.

    Args:
        config: its settings.
        model: the network.
        without_momentum: names of the parameters that sgd moves without momentum.
    """
    if config.name == "adam":
        return torch.optim.Adam(
            model.parameters(), lr=config.highest_lr, weight_decay=config.weight_decay, fused=True
        )
    named = list(model.named_parameters())
    groups = [
        {"params": [p for name, p in named if name not in without_momentum]},
        {"params": [p for name, p in named if name in without_momentum], "momentum": 0.0},
    ]
    return torch.optim.SGD(
        [group for group in groups if group["params"]],
        lr=config.highest_lr,
        momentum=config.momentum,
        weight_decay=config.weight_decay,
        fused=True,
    )


def set_learning_rate(optimizer: torch.optim.Optimizer, rate: float) -> None:
    """Use ``rate`` in the next step."""
    for group in optimizer.param_groups:
        group["lr"] = rate
