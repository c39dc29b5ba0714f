"""The backward pass of a layer whose weight gradient is estimated."""

from __future__ import annotations

import inspect
from dataclasses import dataclass
from typing import Any

import torch
import torch.nn.functional as F

from slimgrad.approx.estimators.base import GradientEstimator, LayerGeometry
from slimgrad.approx.estimators.exact import convolution_backward
from slimgrad.approx.plan import LayerPlan
from slimgrad.core.errors import SlimgradError


@dataclass(frozen=True)
class LayerCall:
    """One approximate call of a layer.

    Attributes:
        plan: name and random streams of the layer.
        estimator: estimates the weight gradient.
        geometry: the layer.
    """

    plan: LayerPlan
    estimator: GradientEstimator
    geometry: LayerGeometry

    def weight_grad(self, x: torch.Tensor | None, grad_out: torch.Tensor) -> torch.Tensor:
        """The estimate.

        Its random stream is named here, in the backward pass: a forward pass that checkpointing
        repeats then takes no part in the numbering of the calls.
        """
        key = self.plan.next_key() if self.estimator.needs_key else 0
        return self.estimator.weight_grad(x, grad_out, self.geometry, key)


def _layer_output(
    x: torch.Tensor, weight: torch.Tensor, bias: torch.Tensor | None, geometry: LayerGeometry
) -> torch.Tensor:
    if geometry.kind == "linear":
        return F.linear(x, weight, bias)
    return torch.conv2d(
        x, weight, bias, geometry.stride, geometry.padding, geometry.dilation, geometry.groups
    )


def _input_grad(
    grad_out: torch.Tensor, x_like: torch.Tensor, weight: torch.Tensor, geometry: LayerGeometry
) -> torch.Tensor:
    if geometry.kind == "linear":
        return grad_out @ weight
    input_grad, _, _ = convolution_backward(
        grad_out, x_like, weight, geometry, (True, False, False)
    )
    return input_grad


def _bias_grad(grad_out: torch.Tensor, geometry: LayerGeometry) -> torch.Tensor:
    if geometry.kind == "linear":
        return grad_out.flatten(0, -2).sum(0)
    return grad_out.sum((0, 2, 3))


def _in_layout_of(weight: torch.Tensor, grad: torch.Tensor) -> torch.Tensor:
    """``grad`` with the strides of ``weight``, so that accumulation and reduction need no copy."""
    if grad.stride() == weight.stride():
        return grad
    laid_out = torch.empty_like(weight, dtype=grad.dtype)
    return grad if laid_out.stride() == grad.stride() else laid_out.copy_(grad)


class EstimatedWeightGrad(torch.autograd.Function):
    """The estimate as a node of the graph of second derivatives, where it ends with an error."""

    @staticmethod
    def forward(grad_out: torch.Tensor, x: torch.Tensor | None, call: LayerCall) -> torch.Tensor:
        """The estimated weight gradient."""
        return call.weight_grad(x, grad_out)

    @staticmethod
    def setup_context(ctx: Any, inputs: tuple[Any, ...], output: torch.Tensor) -> None:
        """Remember whose estimate it is."""
        ctx.call = inputs[2]

    @staticmethod
    def backward(ctx: Any, *grad_outputs: Any) -> Any:
        """Refuse: an estimate has no derivative worth having.

        Raises:
            SlimgradError: always.
        """
        call = ctx.call
        raise SlimgradError(
            f"layer {call.plan.name!r}: the weight gradient estimated by {call.estimator!r} "
            "cannot be differentiated again; leave this layer exact (where=, schedule=) or "
            "restore() the model for second derivatives"
        )


class ApproximateLayer(torch.autograd.Function):
    """A convolution or linear map, exact but for the estimated weight gradient."""

    @staticmethod
    def forward(
        x: torch.Tensor, weight: torch.Tensor, bias: torch.Tensor | None, call: LayerCall
    ) -> torch.Tensor:
        """The stock operation."""
        return _layer_output(x, weight, bias, call.geometry)

    @staticmethod
    def setup_context(ctx: Any, inputs: tuple[Any, ...], output: torch.Tensor) -> None:
        """Save the weight, and the input where the estimator needs it."""
        x, weight, _, call = inputs
        ctx.call = call
        ctx.x_shape = x.shape
        ctx.x_format = _memory_format(x)
        ctx.save_for_backward(x if call.estimator.needs_input else None, weight)

    @staticmethod
    def backward(ctx: Any, *grad_outputs: Any) -> Any:
        """Exact input and bias gradients, estimated weight gradient, each only where needed."""
        (grad_out,) = grad_outputs
        device = grad_out.device.type
        if torch.amp.is_autocast_available(device) and torch.is_autocast_enabled(device):
            # Every dtype was settled in the forward pass.
            with torch.autocast(device, enabled=False):
                return _gradients(ctx, grad_out)
        return _gradients(ctx, grad_out)


# torch reads the signature at every call; kept here, it is not worked out anew each time.
ApproximateLayer.forward.__signature__ = inspect.signature(ApproximateLayer.forward)  # pyright: ignore[reportFunctionMemberAccess]


def _memory_format(x: torch.Tensor) -> torch.memory_format:
    if x.is_contiguous() or x.dim() != 4:
        return torch.contiguous_format
    channels_last = x.is_contiguous(memory_format=torch.channels_last)
    return torch.channels_last if channels_last else torch.contiguous_format


def _gradients(
    ctx: Any, grad_out: torch.Tensor
) -> tuple[torch.Tensor | None, torch.Tensor | None, torch.Tensor | None, None]:
    call: LayerCall = ctx.call
    x, weight = ctx.saved_tensors
    input_grad = weight_grad = bias_grad = None
    if ctx.needs_input_grad[0]:
        x_like = x
        if x_like is None:
            # Only its shape and layout are read; the memory is never touched.
            x_like = torch.empty(
                ctx.x_shape,
                dtype=grad_out.dtype,
                device=grad_out.device,
                memory_format=ctx.x_format,
            )
        input_grad = _input_grad(grad_out, x_like, weight, call.geometry)
    if ctx.needs_input_grad[1] and call.estimator.needs_gradient:
        if torch.is_grad_enabled() and not torch.compiler.is_compiling():
            estimate = EstimatedWeightGrad.apply(grad_out, x, call)
        else:
            estimate = call.weight_grad(x, grad_out)
        weight_grad = _in_layout_of(weight, estimate)
    if ctx.needs_input_grad[2]:
        bias_grad = _bias_grad(grad_out, call.geometry)
    return input_grad, weight_grad, bias_grad, None
