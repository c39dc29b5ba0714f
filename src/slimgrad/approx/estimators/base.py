"""What an estimator of the weight gradient is."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import ClassVar, Literal

import torch

Pair = tuple[int, int]


@dataclass(frozen=True)
class LayerGeometry:
    """Everything about a layer that its weight gradient depends on, besides the two tensors.

    Attributes:
        kind: "conv2d" or "linear".
        weight_shape: (K, C / groups, R, S) for conv2d, (K, C) for linear.
        stride, padding, dilation: of the convolution, (rows, columns); zero padding on both sides.
            Other padding modes are applied to the input before it reaches the estimator.
        groups: number of channel groups.
    """

    kind: Literal["conv2d", "linear"]
    weight_shape: tuple[int, ...]
    stride: Pair = (1, 1)
    padding: Pair = (0, 0)
    dilation: Pair = (1, 1)
    groups: int = 1

    def weight_grad_macs(self, grad_out_shape: tuple[int, ...]) -> int:
        """Multiply-adds of the exact weight gradient for an output gradient of this shape.

        >>> LayerGeometry("conv2d", (16, 3, 3, 3)).weight_grad_macs((128, 16, 32, 32))
        56623104
        >>> LayerGeometry("linear", (10, 64)).weight_grad_macs((128, 10))
        81920
        """
        return math.prod(grad_out_shape) * math.prod(self.weight_shape[1:])


@dataclass(frozen=True)
class WeightGradCost:
    """Multiply-adds spent on one weight gradient, beside those of the exact one.

    Attributes:
        macs: multiply-adds the estimator spends.
        exact_macs: multiply-adds of the exact weight gradient.
    """

    macs: int
    exact_macs: int

    @property
    def saved_macs(self) -> int:
        """Multiply-adds saved; negative when the estimator costs more than exact."""
        return self.exact_macs - self.macs


class GradientEstimator(ABC):
    """Estimates the weight gradient of one layer from its input and output gradient.

    Subclasses are final, immutable and hashable: settings are constructor arguments, state lives
    in schedules. The class facts say what the estimate is worth.

    Attributes:
        name: registry name, equal to the file name.
        unbiased: whether the mean over the estimator's own randomness is the exact gradient.
        needs_input: whether the layer's input must be kept for the backward pass.
        needs_gradient: False for an estimator that leaves ``.grad`` untouched.
        needs_key: whether ``key`` is used; without it the estimate is a function of the tensors.
    """

    name: ClassVar[str]
    unbiased: ClassVar[bool]
    needs_input: ClassVar[bool] = True
    needs_gradient: ClassVar[bool] = True
    needs_key: ClassVar[bool] = False

    @abstractmethod
    def weight_grad(
        self,
        x: torch.Tensor | None,
        grad_out: torch.Tensor,
        geometry: LayerGeometry,
        key: int,
    ) -> torch.Tensor:
        """The estimate, in the weight's shape and ``grad_out``'s dtype.

        Args:
            x: layer input, (N, C, H, W) or (..., C); None when ``needs_input`` is False.
                Any strides.
            grad_out: gradient of the loss by the layer's output, (N, K, P, Q) or (..., K).
                Any strides.
            geometry: the layer.
            key: 64-bit key of the random stream of this (step, layer, rank).
        """

    @abstractmethod
    def cost(self, geometry: LayerGeometry, grad_out_shape: tuple[int, ...]) -> WeightGradCost:
        """Multiply-adds for an output gradient of shape ``grad_out_shape``."""
