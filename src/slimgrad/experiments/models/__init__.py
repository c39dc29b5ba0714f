"""Networks of the founding papers, for images of any channel count and size they allow."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from torch import nn

from slimgrad.core.errors import ConfigError
from slimgrad.core.registry import Registry
from slimgrad.experiments.models.base import ImageShape, draw_parameters
from slimgrad.experiments.models.cnn2 import Cnn2
from slimgrad.experiments.models.resnet import resnet14, resnet20
from slimgrad.experiments.models.resnet18 import ResNet18
from slimgrad.experiments.models.vgg import Vgg19

MODELS: Registry[Callable[..., nn.Module]] = Registry("network")
MODELS.add("cnn2")(Cnn2)
MODELS.add("resnet14")(resnet14)
MODELS.add("resnet18")(ResNet18)
MODELS.add("resnet20")(resnet20)
MODELS.add("vgg19")(Vgg19)


def build_model(name: str, shape: ImageShape, settings: dict[str, Any] | None = None) -> nn.Module:
    """A network by name, with parameters as torch leaves them.

    Args:
        name: cnn2, resnet14, resnet18, resnet20 or vgg19.
        shape: the images it is made for.
        settings: keywords of the network, such as ``width``.

    Raises:
        ConfigError: unknown name, wrong settings, or images the network cannot take.
    """
    try:
        return MODELS.get(name)(shape, **(settings or {}))
    except (TypeError, ValueError) as error:
        raise ConfigError(f"network {name}: {error}") from None


def make_model(
    name: str, shape: ImageShape, settings: dict[str, Any] | None = None, *, seed: int = 0
) -> nn.Module:
    """A network by name, with its parameters drawn from ``seed``; see ``build_model``.

    Torch's global generator is left as it was.

    >>> model = make_model("resnet20", ImageShape(3, 32, 10))
    >>> sum(parameter.numel() for parameter in model.parameters())
    269722
    """
    with torch.device("meta"):
        model = build_model(name, shape, settings)
    model = model.to_empty(device="cpu")
    draw_parameters(model, seed)
    return model
