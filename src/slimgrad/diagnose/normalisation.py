"""Networks with and without batch normalisation, on which estimators behave differently."""

from __future__ import annotations

import copy

from torch import nn
from torch.nn.modules.batchnorm import _BatchNorm


def has_batch_norm(model: nn.Module) -> bool:
    """Whether the statistics of a batch enter the outputs of ``model`` in training.

    >>> has_batch_norm(nn.Sequential(nn.Conv2d(1, 2, 3), nn.BatchNorm2d(2)))
    True
    """
    return any(isinstance(module, _BatchNorm) for module in model.modules())


def without_batch_norm(model: nn.Module) -> nn.Module:
    """A copy of ``model`` in which batch normalisation does nothing.

    >>> has_batch_norm(without_batch_norm(nn.Sequential(nn.Conv2d(1, 2, 3), nn.BatchNorm2d(2))))
    False
    """
    bare = copy.deepcopy(model)
    for module in bare.modules():
        for name, child in module.named_children():
            if isinstance(child, _BatchNorm):
                setattr(module, name, nn.Identity())
    return bare
