"""Which layers of a model can be approximated, which were asked for, and why the others are not."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass

import torch
from torch import nn
from torch.nn.modules.conv import _ConvNd
from torch.nn.modules.lazy import LazyModuleMixin
from torch.nn.modules.linear import NonDynamicallyQuantizableLinear
from torch.nn.parallel import DataParallel, DistributedDataParallel
from torch.nn.utils import parametrize

from slimgrad.approx.layers import PLAN, counted_class, is_changed
from slimgrad.core.errors import ConfigError
from slimgrad.core.registry import unknown_name_message

Where = Callable[[str, nn.Module], bool] | Iterable[str]

_KINDS: dict[type[nn.Module], str] = {
    nn.Conv2d: "conv2d",
    nn.Linear: "linear",
    nn.Conv1d: "conv1d",
    nn.Conv3d: "conv3d",
    nn.ConvTranspose1d: "conv_transpose1d",
    nn.ConvTranspose2d: "conv_transpose2d",
    nn.ConvTranspose3d: "conv_transpose3d",
}


@dataclass(frozen=True)
class Candidate:
    """A convolution or linear layer of the model.

    Attributes:
        name: dotted name.
        module: the layer.
        kind: "conv2d", "linear", "conv1d", "conv_transpose2d" and so on.
        reason: why its weight gradient stays exact; "" for a layer to convert.
        countable: whether its multiply-adds can be counted.
    """

    name: str
    module: nn.Module
    kind: str
    reason: str
    countable: bool


def bare_model(model: nn.Module) -> nn.Module:
    """The user's model inside data-parallel and compile wrappers, so that names stay the same."""
    while True:
        if isinstance(model, DataParallel | DistributedDataParallel):
            model = model.module
        elif isinstance(inner := getattr(model, "_orig_mod", None), nn.Module):
            model = inner
        else:
            return model


def candidates(model: nn.Module, where: Where | None) -> list[Candidate]:
    """All convolution and linear layers of ``model`` in module order, judged.

    Raises:
        ConfigError: ``where`` names something that does not exist or cannot be converted, or the
            model is approximated already.
    """
    layers = list(_layers(model))
    for name, module, _ in layers:
        if is_changed(module) and module.__dict__[PLAN].owner_alive:
            raise ConfigError(
                f"layer {name!r} is approximated already; call restore() on the handle of the "
                "earlier approximate() first"
            )
    asked = _asked(layers, where)
    found = []
    for name, module, kind in layers:
        obstacle, countable = _obstacle(module, kind)
        not_asked = asked(name, module, kind)
        reason = obstacle or not_asked
        if obstacle and not not_asked and _is_names(where):
            raise ConfigError(f"where= names layer {name!r}, which stays exact: {obstacle}")
        found.append(Candidate(name, module, kind, reason, countable))
    return found


def _layers(model: nn.Module) -> Iterator[tuple[str, nn.Module, str]]:
    for name, module in model.named_modules():
        if isinstance(module, nn.Linear | _ConvNd):
            kinds = (kind for stock, kind in _KINDS.items() if isinstance(module, stock))
            yield name, module, next(kinds, "convolution")


def _is_names(where: Where | None) -> bool:
    return where is not None and not callable(where)


def _asked(
    layers: list[tuple[str, nn.Module, str]], where: Where | None
) -> Callable[[str, nn.Module, str], str]:
    """A function that says why a layer was not asked for; "" when it was."""
    if where is None:
        if any(kind == "conv2d" for _, _, kind in layers):
            reason = "by default only convolutions of a model that has any; choose it with where="
            return lambda name, module, kind: reason if kind == "linear" else ""
        return lambda name, module, kind: ""
    if callable(where):
        return lambda name, module, kind: "" if where(name, module) else "not chosen by where="
    names = _names(where)
    known = [name for name, _, _ in layers]
    for name in names:
        if name not in known:
            raise ConfigError(unknown_name_message("layer in where=", name, known))
    return lambda name, module, kind: "" if name in names else "not chosen by where="


def _names(where: object) -> list[str]:
    if isinstance(where, str):
        return [where]
    given = list(where) if isinstance(where, Iterable) else [where]
    names = [name for name in given if isinstance(name, str)]
    if len(names) < len(given):
        raise ConfigError(
            f"where must be layer names or a function of (name, module), got {where!r}"
        )
    return names


def _obstacle(module: nn.Module, kind: str) -> tuple[str, bool]:
    """Why the layer cannot be converted ("" if it can), and whether it can be counted."""
    stock = type(module).__bases__[1] if is_changed(module) else type(module)
    if "forward" in module.__dict__:
        return "its forward was replaced on the instance", False
    if parametrize.is_parametrized(module):
        return "it has parametrizations (torch.nn.utils.parametrize)", False
    if isinstance(module, LazyModuleMixin):
        return "it is lazy; run the model once before approximate()", False
    if isinstance(module, NonDynamicallyQuantizableLinear):
        return "nn.MultiheadAttention uses its weight without calling the layer", False
    try:
        counted_class(stock)
    except Exception as error:  # whatever the hooks of a class say to a subclass
        return f"its class {stock.__name__} allows no plain subclass ({error})", False
    if kind not in ("conv2d", "linear"):
        return f"{kind} layers have no approximate weight gradient", True
    base = nn.Conv2d if kind == "conv2d" else nn.Linear
    if stock.forward is not base.forward or (
        getattr(stock, "_conv_forward", None) is not getattr(base, "_conv_forward", None)
    ):
        return f"its class {stock.__name__} has a forward of its own", True
    weight = module.weight
    if isinstance(weight, torch.Tensor) and not weight.is_floating_point():
        return f"its weight is {str(weight.dtype).removeprefix('torch.')}", True
    return "", True
