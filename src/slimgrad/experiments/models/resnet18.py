"""ResNet-18, the network of most gradient compression papers, for small images."""

from __future__ import annotations

import torch
from torch import nn

from slimgrad.core.errors import ConfigError
from slimgrad.experiments.models.base import ImageShape


class _Block(nn.Module):
    """Two 3x3 convolutions beside a shortcut, a 1x1 convolution where the shape changes."""

    def __init__(self, c_in: int, c_out: int, stride: int) -> None:
        super().__init__()
        self.conv1 = nn.Conv2d(c_in, c_out, 3, stride=stride, padding=1, bias=False)
        self.norm1 = nn.BatchNorm2d(c_out)
        self.conv2 = nn.Conv2d(c_out, c_out, 3, padding=1, bias=False)
        self.norm2 = nn.BatchNorm2d(c_out)
        self.relu = nn.ReLU()
        self.shortcut = nn.Sequential()
        if stride != 1 or c_in != c_out:
            self.shortcut.append(nn.Conv2d(c_in, c_out, 1, stride=stride, bias=False))
            self.shortcut.append(nn.BatchNorm2d(c_out))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        y = self.relu(self.norm1(self.conv1(x)))
        return self.relu(self.norm2(self.conv2(y)) + self.shortcut(x))


class ResNet18(nn.Module):
    """Four stages of two blocks with ``width`` to 8 ``width`` channels, 11.2 million parameters.

    The first convolution is 3x3 without stride or pooling, as is usual for images of 32 pixels;
    otherwise the network of He et al. (2016), table 1.
    """

    def __init__(self, shape: ImageShape, width: int = 64) -> None:
        super().__init__()
        if width < 1:
            raise ConfigError(f"width = {width}: must be at least 1")
        if shape.size < 8:
            raise ConfigError(
                f"resnet18 needs images of at least 8x8, not {shape.size}x{shape.size}"
            )
        self.conv = nn.Conv2d(shape.channels, width, 3, padding=1, bias=False)
        self.norm = nn.BatchNorm2d(width)
        self.relu = nn.ReLU()
        self.blocks = nn.Sequential()
        c_in = width
        for stage in range(4):
            c_out = width << stage
            for block in range(2):
                self.blocks.append(_Block(c_in, c_out, 2 if stage and not block else 1))
                c_in = c_out
        self.linear = nn.Linear(c_in, shape.classes)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """Class scores of images (N, C, H, W)."""
        x = self.relu(self.norm(self.conv(x)))
        return self.linear(self.blocks(x).mean((2, 3)))
