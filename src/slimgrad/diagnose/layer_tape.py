"""The input and the output gradient of chosen layers during one backward pass."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import torch
from torch import nn

from slimgrad.approx.estimators.base import GradientEstimator, LayerGeometry
from slimgrad.approx.estimators.exact import Exact
from slimgrad.approx.layers import layer_geometry, padded_input


class LayerTape:
    """Records what weight gradients are made of, inside a ``with`` block.

    A layer that is called several times has the sum over its calls.

    Args:
        layers: two-dimensional convolutions and linear layers by name.

    Attributes:
        names: of the layers, in the order given.
    """

    def __init__(self, layers: Mapping[str, nn.Module]) -> None:
        self._layers = dict(layers)
        self.names = tuple(layers)
        self._calls: dict[str, list[tuple[torch.Tensor, torch.Tensor]]] = {}
        self._handles: list[Any] = []

    def __enter__(self) -> LayerTape:
        self._calls = {name: [] for name in self.names}
        for name, layer in self._layers.items():
            self._handles.append(layer.register_forward_hook(self._hook(name)))
        return self

    def __exit__(self, *error: object) -> None:
        for handle in self._handles:
            handle.remove()
        self._handles.clear()

    def exact(self, name: str) -> torch.Tensor:
        """The exact weight gradient of a layer, float64, flat."""
        return self.estimate(name, Exact(), 0)

    def estimate(self, name: str, estimator: GradientEstimator, key: int) -> torch.Tensor:
        """The estimated weight gradient of a layer, float64, flat."""
        geometry = self._geometry(name)
        total = torch.zeros(geometry.weight_shape, dtype=torch.float64)
        for number, (x, grad_out) in enumerate(self._calls[name]):
            call_key = (key + number * 0x9E3779B97F4A7C15) % 2**64
            total += estimator.weight_grad(x, grad_out, geometry, call_key).double()
        return total.flatten()

    def _geometry(self, name: str) -> LayerGeometry:
        layer = self._layers[name]
        assert isinstance(layer, nn.Conv2d | nn.Linear)
        return layer_geometry(layer)

    def _hook(self, name: str) -> Any:
        def record(layer: nn.Module, inputs: tuple[Any, ...], output: torch.Tensor) -> None:
            x = inputs[0].detach()
            if isinstance(layer, nn.Conv2d):
                x = padded_input(layer, x)

            def keep(grad_out: torch.Tensor) -> None:
                self._calls[name].append((x, grad_out.detach()))

            if output.requires_grad:
                output.register_hook(keep)

        return record
