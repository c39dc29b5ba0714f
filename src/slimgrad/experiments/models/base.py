"""What a network is made for, and how its parameters are drawn."""

from __future__ import annotations

import math
from dataclasses import dataclass

import torch
from torch import nn

from slimgrad.core.rng import normal, stream_key
from slimgrad.experiments.data.base import ImageDataset


@dataclass(frozen=True)
class ImageShape:
    """The images a network is made for.

    Attributes:
        channels: channels of an image.
        size: rows, equal to columns.
        classes: number of classes.
    """

    channels: int
    size: int
    classes: int

    @classmethod
    def of(cls, dataset: ImageDataset) -> ImageShape:
        """The shape of a data set's images."""
        return cls(dataset.channels, dataset.image_size, len(dataset.class_names))


@torch.no_grad()
def draw_parameters(model: nn.Module, seed: int) -> None:
    """Draw all weights anew, each from its own stream of ``seed``.

    Convolutions and hidden linear layers N(0, 2 / fan_in) (He et al., 2015, section 2.2), the
    last linear layer N(0, 1 / fan_in); biases 0; batch norms 1 and 0. The global generator is
    neither used nor changed.
    """
    linears = [layer for layer in model.modules() if isinstance(layer, nn.Linear)]
    for name, layer in model.named_modules():
        if isinstance(layer, nn.Conv2d | nn.Linear):
            fan_in = layer.weight[0].numel()
            gain = 1.0 if linears and layer is linears[-1] else 2.0
            draws = normal(stream_key(seed, 0, f"{name}.weight"), tuple(layer.weight.shape))
            layer.weight.copy_(draws * math.sqrt(gain / fan_in))
            if layer.bias is not None:
                layer.bias.zero_()
        elif isinstance(layer, nn.BatchNorm2d):
            layer.reset_parameters()  # sets constants, draws nothing
