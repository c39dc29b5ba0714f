"""The class that layers take on, and the way back."""

from __future__ import annotations

import copyreg
import functools
import math
from typing import Any, cast

import torch
import torch.nn.functional as F
from torch import nn
from torch.nn.modules.conv import _ConvNd

from slimgrad.approx.autograd import ApproximateLayer, LayerCall
from slimgrad.approx.estimators.base import GradientEstimator, LayerGeometry
from slimgrad.approx.plan import LayerPlan

PLAN = "_approx_plan"
# Marks a layer whose exact weight gradient the position kernel computes.
TUNED = "_approx_tuned"


class CountedLayer(nn.Module):
    """Mixin: counts weight-gradient multiply-adds, and estimates where the layer's plan says so.

    Layers that stay exact take it on too: forward hooks could count them as well, but would slow
    down and, in ``nn.TransformerEncoderLayer``, change what evaluation computes.
    """

    _approx_plan: LayerPlan

    def forward(self, *args: Any, **kwargs: Any) -> Any:
        """The stock output."""
        if not _trains_weight(self):
            return super().forward(*args, **kwargs)
        plan = self._approx_plan
        if plan.estimator is not None:
            output = _estimating_output(self, plan.estimator, *args, **kwargs)
            if output is not None:
                return output
        output = super().forward(*args, **kwargs)
        macs = _exact_macs(self, output, *args, **kwargs)
        plan.count(macs, macs)
        return output

    def extra_repr(self) -> str:
        """The stock text and this step's estimator."""
        return f"{super().extra_repr()}, weight_grad={self._approx_plan.estimator or 'exact'}"

    def __reduce_ex__(self, protocol: Any) -> Any:
        """Copies and pickles are rebuilt from the stock class, which has an importable name."""
        reduced = super().__reduce_ex__(max(int(protocol), 2))
        if not is_changed(self) or reduced[0] is not copyreg.__newobj__:  # pyright: ignore[reportAttributeAccessIssue]
            return reduced
        _, args, *rest = reduced
        return _rebuild, (type(self).__bases__[1], *args[1:]), *rest


def _trains_weight(layer: nn.Module) -> bool:
    """Whether this forward pass will be followed by a weight gradient."""
    if not layer.training or not torch.is_grad_enabled():
        return False
    weight = layer.weight
    if not isinstance(weight, torch.Tensor) or not weight.requires_grad:
        return False
    tracing = torch.jit.is_tracing()  # pyright: ignore[reportPrivateImportUsage]
    return not torch.compiler.is_exporting() and not tracing


def _exact_macs(layer: nn.Module, output: Any, /, input: Any = None, *_: Any, **__: Any) -> int:
    """Multiply-adds of one exact weight gradient; 0 for outputs of a form of their own.

    From the settings alone, as the geometry.
    """
    if isinstance(layer, nn.Linear):
        slid, macs = output, layer.in_features
    else:
        assert isinstance(layer, _ConvNd)
        # A transposed convolution slides over its input.
        slid, channels = (
            (input, layer.out_channels) if layer.transposed else (output, layer.in_channels)
        )
        macs = channels // layer.groups * math.prod(layer.kernel_size)
    return slid.numel() * macs if isinstance(slid, torch.Tensor) else 0


def _estimating_output(
    layer: nn.Module, estimator: GradientEstimator, input: torch.Tensor
) -> torch.Tensor | None:
    """The stock output with an estimate behind it; None where only the stock layer can take it."""
    assert isinstance(layer, nn.Conv2d | nn.Linear)
    batched = _as_batch(layer, input)
    if batched is None:
        return None
    run = _call_outside_compiled_code if estimator.needs_key else _call
    output = run(layer, batched, estimator)
    return output.squeeze(0) if batched.dim() > input.dim() else output


def _as_batch(layer: nn.Conv2d | nn.Linear, input: torch.Tensor) -> torch.Tensor | None:
    """``input`` with a sample dimension; None where only the stock operation can take it."""
    dims = 2 if isinstance(layer, nn.Linear) else 4
    tensor = isinstance(input, torch.Tensor)
    if not tensor or input.is_nested or input.layout is not torch.strided:
        return None
    if input.dim() == dims - 1:
        return input.unsqueeze(0)
    fits = input.dim() >= 2 if dims == 2 else input.dim() == 4
    return input if fits else None


def _call(
    layer: nn.Conv2d | nn.Linear, x: torch.Tensor, estimator: GradientEstimator
) -> torch.Tensor:
    plan = cast("LayerPlan", layer._approx_plan)
    # Read anew in every call: whoever changes a stride later means the layer, not a copy of it.
    geometry = layer_geometry(layer)
    if isinstance(layer, nn.Conv2d):
        x = padded_input(layer, x)
    x, weight, bias = _autocast(x, layer.weight, layer.bias)
    output = ApproximateLayer.apply(x, weight, bias, LayerCall(plan, estimator, geometry))
    assert isinstance(output, torch.Tensor)
    cost = estimator.cost(geometry, tuple(output.shape))
    plan.count(cost.exact_macs, cost.macs)
    return output


@torch.compiler.disable(reason="estimators with random streams run outside compiled code")
def _call_outside_compiled_code(
    layer: nn.Conv2d | nn.Linear, x: torch.Tensor, estimator: GradientEstimator
) -> torch.Tensor:
    return _call(layer, x, estimator)


def _autocast(
    x: torch.Tensor, weight: torch.Tensor, bias: torch.Tensor | None
) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor | None]:
    """The casts autocast makes before the stock operation, as differentiable operations."""
    device = x.device.type
    if not torch.amp.is_autocast_available(device) or not torch.is_autocast_enabled(device):
        return x, weight, bias
    dtype = torch.get_autocast_dtype(device)

    def cast_down(tensor: torch.Tensor) -> torch.Tensor:
        narrow = tensor.is_floating_point() and tensor.dtype != torch.float64
        return tensor.to(dtype) if narrow else tensor

    return cast_down(x), cast_down(weight), None if bias is None else cast_down(bias)


def _same_padding(layer: nn.Conv2d) -> tuple[tuple[int, int], list[int]]:
    """Padding on both sides, and what padding="same" adds beyond it (F.pad order)."""
    both, beyond = [], []
    for size, dilation in zip(layer.kernel_size, layer.dilation, strict=True):
        total = dilation * (size - 1)
        both.append(total // 2)
        beyond.append(total - 2 * (total // 2))
    return (both[0], both[1]), [0, beyond[1], 0, beyond[0]]


def padded_input(layer: nn.Conv2d, x: torch.Tensor) -> torch.Tensor:
    """``x`` with the padding that a symmetric zero padding cannot express."""
    if layer.padding_mode != "zeros":
        return F.pad(x, layer._reversed_padding_repeated_twice, mode=layer.padding_mode)
    if layer.padding == "same":
        beyond = _same_padding(layer)[1]
        return F.pad(x, beyond) if any(beyond) else x
    return x


def layer_geometry(layer: nn.Conv2d | nn.Linear) -> LayerGeometry:
    """The geometry of a layer, from its settings alone, since sharding reshapes its weight."""
    if isinstance(layer, nn.Linear):
        return LayerGeometry("linear", (layer.out_features, layer.in_features))
    if layer.padding_mode != "zeros" or layer.padding == "valid":
        padding = (0, 0)
    elif isinstance(layer.padding, str):
        padding = _same_padding(layer)[0]
    else:
        padding = (layer.padding[0], layer.padding[1])
    rows, columns = layer.kernel_size
    return LayerGeometry(
        "conv2d",
        (layer.out_channels, layer.in_channels // layer.groups, rows, columns),
        stride=(layer.stride[0], layer.stride[1]),
        padding=padding,
        dilation=(layer.dilation[0], layer.dilation[1]),
        groups=layer.groups,
    )


@functools.cache
def counted_class(stock: type[nn.Module]) -> type[nn.Module]:
    """``stock`` with the abilities of :class:`CountedLayer`; fails as its subclasses would."""
    return type(f"Counted{stock.__name__}", (CountedLayer, stock), {"__module__": stock.__module__})


def _rebuild(stock: type[nn.Module], *args: Any) -> nn.Module:
    counted = counted_class(stock)
    return counted.__new__(counted, *args)


def change_class(module: nn.Module, plan: LayerPlan) -> None:
    """Count and, as ``plan`` says, estimate in ``module``; parameters, buffers and hooks stay."""
    module.__class__ = counted_class(type(module))
    module.__dict__[PLAN] = plan


def is_changed(module: nn.Module) -> bool:
    """Whether :func:`change_class` was the last to change the class of ``module``."""
    return PLAN in module.__dict__ and type(module).__bases__[0] is CountedLayer


def change_back(module: nn.Module) -> None:
    """Undo :func:`change_class`."""
    module.__class__ = type(module).__bases__[1]
    del module.__dict__[PLAN]
