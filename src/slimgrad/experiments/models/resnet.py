"""Residual networks for small images."""

from __future__ import annotations

import torch
import torch.nn.functional as F
from torch import nn

from slimgrad.core.errors import ConfigError
from slimgrad.experiments.models.base import ImageShape


class ResidualBlock(nn.Module):
    """Two 3x3 convolutions beside a shortcut without parameters.

    Where the block halves the image and widens, the shortcut takes every second pixel and fills
    the new channels with zeros (He et al., 2016, section 3.3, option A), so that every
    convolution of the network is 3x3.
    """

    def __init__(self, c_in: int, c_out: int, stride: int) -> None:
        super().__init__()
        self.conv1 = nn.Conv2d(c_in, c_out, 3, stride=stride, padding=1, bias=False)
        self.norm1 = nn.BatchNorm2d(c_out)
        self.conv2 = nn.Conv2d(c_out, c_out, 3, padding=1, bias=False)
        self.norm2 = nn.BatchNorm2d(c_out)
        self.relu = nn.ReLU()
        self.stride = stride
        self.new_channels = c_out - c_in

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """The block's output for (N, C, H, W)."""
        y = self.relu(self.norm1(self.conv1(x)))
        y = self.norm2(self.conv2(y))
        if self.stride != 1 or self.new_channels:
            before = self.new_channels // 2
            x = x[:, :, :: self.stride, :: self.stride]
            x = F.pad(x, (0, 0, 0, 0, before, self.new_channels - before))
        return self.relu(y + x)


class ResNet(nn.Module):
    """Three stages of ``blocks`` residual blocks with 1, 2 and 4 times ``width`` channels.

    6 * blocks + 2 layers: 14 for two blocks a stage, 20 for three (He et al., 2016, section 4.2).
    """

    def __init__(self, shape: ImageShape, blocks: int, width: int = 16) -> None:
        super().__init__()
        if width < 1:
            raise ConfigError(f"width = {width}: must be at least 1")
        if shape.size < 4:
            raise ConfigError(f"resnet needs images of at least 4x4, not {shape.size}x{shape.size}")
        self.conv = nn.Conv2d(shape.channels, width, 3, padding=1, bias=False)
        self.norm = nn.BatchNorm2d(width)
        self.relu = nn.ReLU()
        stages: list[nn.Module] = []
        c_in = width
        for stage in range(3):
            c_out = width << stage
            for block in range(blocks):
                stages.append(ResidualBlock(c_in, c_out, 2 if stage and not block else 1))
                c_in = c_out
        self.blocks = nn.Sequential(*stages)
        self.linear = nn.Linear(c_in, shape.classes)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """Class scores of images (N, C, H, W)."""
        x = self.relu(self.norm(self.conv(x)))
        x = self.blocks(x)
        return self.linear(x.mean((2, 3)))


def resnet14(shape: ImageShape, width: int = 16) -> ResNet:
    """ResNet-14: two blocks a stage."""
    return ResNet(shape, 2, width)


def resnet20(shape: ImageShape, width: int = 16) -> ResNet:
    """ResNet-20: three blocks a stage."""
    return ResNet(shape, 3, width)
