"""The 2-layer network of the gradient-approximation paper."""

from __future__ import annotations

import torch
from torch import nn

from slimgrad.core.errors import ConfigError
from slimgrad.experiments.models.base import ImageShape


class Cnn2(nn.Module):
    """Two 5x5 convolutions and three linear layers (Wang et al., 2019, section 3).

    Batch norm stands where the original has local response normalisation: after the first
    pooling, and before the second. The linear layers have 6 and 3 times ``width`` units, so the
    original's 384 and 192 at width 64.
    """

    def __init__(self, shape: ImageShape, width: int = 64) -> None:
        super().__init__()
        if width < 1:
            raise ConfigError(f"width = {width}: must be at least 1")
        if shape.size < 4:
            raise ConfigError(f"cnn2 needs images of at least 4x4, not {shape.size}x{shape.size}")
        side = (shape.size + 1) // 2
        side = (side + 1) // 2
        self.conv1 = nn.Conv2d(shape.channels, width, 5, padding=2)
        self.norm1 = nn.BatchNorm2d(width)
        self.conv2 = nn.Conv2d(width, width, 5, padding=2)
        self.norm2 = nn.BatchNorm2d(width)
        self.pool = nn.MaxPool2d(3, stride=2, padding=1)
        self.relu = nn.ReLU()
        self.linear1 = nn.Linear(width * side * side, 6 * width)
        self.linear2 = nn.Linear(6 * width, 3 * width)
        self.linear3 = nn.Linear(3 * width, shape.classes)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """Class scores of images (N, C, H, W)."""
        x = self.norm1(self.pool(self.relu(self.conv1(x))))
        x = self.pool(self.norm2(self.relu(self.conv2(x))))
        x = self.relu(self.linear1(x.flatten(1)))
        x = self.relu(self.linear2(x))
        return self.linear3(x)
