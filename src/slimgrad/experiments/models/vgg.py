"""VGG-19 for small images."""

from __future__ import annotations

import torch
from torch import nn

from slimgrad.core.errors import ConfigError
from slimgrad.experiments.models.base import ImageShape

_STAGES = ((64, 2), (128, 2), (256, 4), (512, 4), (512, 4))


class Vgg19(nn.Module):
    """Sixteen 3x3 convolutions with batch norm, then one linear layer.

    Configuration E of Simonyan and Zisserman (2015, table 1), with the classifier of 4096 units
    left out because five poolings leave a single position of a 32x32 image.
    """

    def __init__(self, shape: ImageShape, width: int = 64) -> None:
        super().__init__()
        if width < 1:
            raise ConfigError(f"width = {width}: must be at least 1")
        if shape.size < 32:
            raise ConfigError(
                f"vgg19 needs images of at least 32x32, not {shape.size}x{shape.size}: "
                "it halves them five times"
            )
        layers: list[nn.Module] = []
        c_in = shape.channels
        for channels, count in _STAGES:
            c_out = max(1, channels * width // 64)
            for _ in range(count):
                layers += [
                    nn.Conv2d(c_in, c_out, 3, padding=1, bias=False),
                    nn.BatchNorm2d(c_out),
                    nn.ReLU(inplace=True),
                ]
                c_in = c_out
            layers.append(nn.MaxPool2d(2))
        self.features = nn.Sequential(*layers)
        self.linear = nn.Linear(c_in, shape.classes)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """Class scores of images (N, C, H, W)."""
        return self.linear(self.features(x).mean((2, 3)))
