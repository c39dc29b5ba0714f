"""The classes that converted layers take on, and the way back."""

from __future__ import annotations

import functools
from typing import Any, cast

import torch
import torch.nn.functional as F
from torch import nn

from slimgrad.approx.autograd import ApproximateLayer, LayerCall
from slimgrad.approx.estimators.base import GradientEstimator, LayerGeometry
from slimgrad.approx.plan import LayerPlan

PLAN = "_approx_plan"


class CountedLayer(nn.Module):
    """Mixin: counts the multiply-adds of the exact weight gradient, changes nothing else."""

    _approx_plan: LayerPlan

    def forward(self, *args: Any, **kwargs: Any) -> Any:
        """The stock output."""
        output = super().forward(*args, **kwargs)
        if _trains_weight(self):
            macs = _exact_macs(self, args[0] if args else None, output)
            self._approx_plan.count(macs, macs)
        return output

    def __reduce_ex__(self, protocol: Any) -> Any:
        """Copies and pickles are rebuilt from the stock class, which has an importable name."""
        if not is_changed(self):
            return super().__reduce_ex__(protocol)
        _, args, *rest = super().__reduce_ex__(max(int(protocol), 2))
        mixin, stock = type(self).__bases__
        return _rebuild, (mixin, stock, *args[1:]), *rest


class ApproximatedLayer(CountedLayer):
    """Mixin: in training, the weight gradient is estimated where the schedule says so."""

    def forward(self, input: torch.Tensor) -> torch.Tensor:
        """The stock output."""
        estimator = self._approx_plan.estimator
        if estimator is None or not _trains_weight(self):
            return super().forward(input)
        batched = self._as_batch(input)
        if batched is None:
            return super().forward(input)
        if estimator.needs_key:
            output = _keyed_output(self, batched, estimator)
        else:
            output = _approximate_output(self, batched, estimator, 0)
        return output.squeeze(0) if batched.dim() > input.dim() else output

    def extra_repr(self) -> str:
        """The stock text and this step's estimator."""
        return f"{super().extra_repr()}, weight_grad={self._approx_plan.estimator or 'exact'}"

    def _as_batch(self, input: torch.Tensor) -> torch.Tensor | None:
        """``input`` with a sample dimension; None where only the stock operation can take it."""
        dims = 2 if isinstance(self, nn.Linear) else 4
        if input.is_nested or input.layout is not torch.strided:
            return None
        if input.dim() == dims - 1:
            return input.unsqueeze(0)
        fits = input.dim() >= 2 if dims == 2 else input.dim() == 4
        return input if fits else None


def _trains_weight(layer: nn.Module) -> bool:
    """Whether this forward pass will be followed by a weight gradient."""
    if not layer.training or not torch.is_grad_enabled():
        return False
    weight = layer.weight
    if not isinstance(weight, torch.Tensor) or not weight.requires_grad:
        return False
    tracing = torch.jit.is_tracing()  # pyright: ignore[reportPrivateImportUsage]
    return not torch.compiler.is_exporting() and not tracing


def _exact_macs(layer: nn.Module, x: Any, output: Any) -> int:
    """Multiply-adds of one exact weight gradient; 0 for outputs of a form of their own."""
    weight = cast("torch.Tensor", layer.weight)
    # A transposed convolution has its input channels first, and slides over its input.
    slid = x if getattr(layer, "transposed", False) else output
    if not isinstance(slid, torch.Tensor):
        return 0
    return slid.numel() // weight.shape[0] * weight.numel()


def _approximate_output(
    layer: nn.Module, x: torch.Tensor, estimator: GradientEstimator, key: int
) -> torch.Tensor:
    plan = cast("LayerPlan", layer._approx_plan)
    assert plan.layer is not None
    geometry = plan.layer.geometry
    if isinstance(layer, nn.Conv2d):
        x = _pad(layer, x)
    weight, bias = cast("torch.Tensor", layer.weight), cast("torch.Tensor | None", layer.bias)
    x, weight, bias = _autocast(x, weight, bias)
    output = ApproximateLayer.apply(x, weight, bias, LayerCall(plan.name, estimator, geometry, key))
    assert isinstance(output, torch.Tensor)
    cost = estimator.cost(geometry, tuple(output.shape))
    plan.count(cost.exact_macs, cost.macs)
    return output


@torch.compiler.disable(reason="estimators with random streams run outside compiled code")
def _keyed_output(layer: nn.Module, x: torch.Tensor, estimator: GradientEstimator) -> torch.Tensor:
    plan = cast("LayerPlan", layer._approx_plan)
    return _approximate_output(layer, x, estimator, plan.next_key())


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


def _pad(layer: nn.Conv2d, x: torch.Tensor) -> torch.Tensor:
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
def combined_class(mixin: type[CountedLayer], stock: type[nn.Module]) -> type[nn.Module]:
    """``stock`` with the abilities of ``mixin``; TypeError where ``stock`` allows no subclass."""
    prefix = "Approximate" if issubclass(mixin, ApproximatedLayer) else "Counted"
    return type(f"{prefix}{stock.__name__}", (mixin, stock), {"__module__": stock.__module__})


def _rebuild(mixin: type[CountedLayer], stock: type[nn.Module], *args: Any) -> nn.Module:
    combined = combined_class(mixin, stock)
    return combined.__new__(combined, *args)


def change_class(module: nn.Module, mixin: type[CountedLayer], plan: LayerPlan) -> None:
    """Give ``module`` the abilities of ``mixin``; parameters, buffers and hooks stay."""
    module.__class__ = combined_class(mixin, type(module))
    module.__dict__[PLAN] = plan


def is_changed(module: nn.Module) -> bool:
    """Whether :func:`change_class` was the last to change the class of ``module``."""
    return PLAN in module.__dict__ and type(module).__bases__[0] in (
        CountedLayer,
        ApproximatedLayer,
    )


def change_back(module: nn.Module) -> None:
    """Undo :func:`change_class`."""
    module.__class__ = type(module).__bases__[1]
    del module.__dict__[PLAN]
