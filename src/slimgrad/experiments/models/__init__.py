"""Networks of the founding papers, for images of any channel count and size they allow."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from torch import nn

from slimgrad.core.errors import ConfigError
from slimgrad.core.registry import Registry
from slimgrad.experiments.models.base import ImageShape, draw_parameters
from slimgrad.experiments.models.cnn2 import Cnn2
from slimgrad.experiments.models.resnet import resnet14, resnet20
from slimgrad.experiments.models.vgg import Vgg19

MODELS: Registry[Callable[..., nn.Module]] = Registry("network")
MODELS.add("cnn2")(Cnn2)
MODELS.add("resnet14")(resnet14)
MODELS.add("resnet20")(resnet20)
MODELS.add("vgg19")(Vgg19)


def make_model(
    name: str, shape: ImageShape, settings: dict[str, Any] | None = None, *, seed: int = 0
) -> nn.Module:
    """A network by name, with its parameters drawn from ``seed``.

    Args:
        name: cnn2, resnet14, resnet20 or vgg19.
        shape: the images it is made for.
        settings: keywords of the network, such as ``width``.
        seed: equal seeds give equal parameters.

    Raises:
        ConfigError: unknown name, or images the network cannot take.

    >>> model = make_model("resnet20", ImageShape(3, 32, 10))
    >>> sum(parameter.numel() for parameter in model.parameters())
    269722
    """
    try:
        model = MODELS.get(name)(shape, **(settings or {}))
    except TypeError as error:
        raise ConfigError(f"network {name}: {error}") from None
    draw_parameters(model, seed)
    return model
