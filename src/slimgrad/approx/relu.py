"""A rectifier that remembers one bit an element for the backward pass, not its output."""

from __future__ import annotations

import warnings
from typing import Any

import torch
import torch.nn.functional as F
from torch import nn

from slimgrad import kernels
from slimgrad.core.errors import ConfigError, NoEffectWarning


class _BitMaskReLU(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, x: torch.Tensor, inplace: bool) -> torch.Tensor:
        output = torch.relu_(x) if inplace else torch.relu(x)
        if inplace:
            ctx.mark_dirty(x)
        ctx.size, ctx.stride = output.size(), output.stride()
        ctx.save_for_backward(kernels.pack_positive(_in_memory_order(output)))
        return output

    @staticmethod
    def backward(ctx: Any, *grad_outputs: Any) -> Any:
        (grad_out,) = grad_outputs
        (bits,) = ctx.saved_tensors
        if torch.is_grad_enabled():
            # A product of plain operations, so that it can be differentiated again.
            ones = torch.empty_strided(ctx.size, ctx.stride, dtype=grad_out.dtype)
            _in_memory_order(ones).copy_(kernels.apply_mask(_in_memory_order(ones.fill_(1)), bits))
            return grad_out * ones, None
        if grad_out.stride() != ctx.stride:
            laid_out = torch.empty_strided(ctx.size, ctx.stride, dtype=grad_out.dtype)
            grad_out = laid_out.copy_(grad_out)
        masked = kernels.apply_mask(_in_memory_order(grad_out), bits)
        return masked.as_strided(ctx.size, ctx.stride), None


def _is_dense(x: torch.Tensor) -> bool:
    return torch.ops.aten.is_non_overlapping_and_dense(x)


def _in_memory_order(x: torch.Tensor) -> torch.Tensor:
    return x.as_strided((x.numel(),), (1,))


class BitMaskReLU(nn.ReLU):
    """max(x, 0), with the sign of every element kept as one bit.

    The stock rectifier keeps its output for the backward pass: 32 bits an element, shared with the
    layer behind it when that keeps its input. Where that layer needs no input (an estimator with
    ``needs_input = False``), nothing else holds the tensor, and this class frees it.

    Output and gradient are those of ``torch.nn.ReLU`` to the last bit. Elements must be on the CPU
    and in memory without gaps; the stock operation runs where they are not, where no gradient is
    wanted, and in compiled code.

    >>> x = torch.tensor([-1.0, 2.0], requires_grad=True)
    >>> BitMaskReLU()(x).sum().backward()
    >>> x.grad.tolist()
    [0.0, 1.0]
    """

    def forward(self, input: torch.Tensor) -> torch.Tensor:
        """max(input, 0)."""
        serves = (
            torch.is_grad_enabled()
            and input.requires_grad
            and not torch.compiler.is_compiling()
            and input.device.type == "cpu"
            and input.is_floating_point()
            and _is_dense(input)
        )
        if not serves:
            return F.relu(input, self.inplace)
        output = _BitMaskReLU.apply(input, self.inplace)
        assert isinstance(output, torch.Tensor)
        return output


def use_bit_mask_relu(model: nn.Module, on: bool = True) -> int:
    """Turn every ``torch.nn.ReLU`` of a model into a :class:`BitMaskReLU`, or back.

    Modules stay the same objects; calls of ``torch.relu`` and ``F.relu`` are not modules and stay
    as they are.

    Args:
        model: changed in place.
        on: False to turn back.

    Returns:
        How many modules changed.

    Raises:
        ConfigError: ``model`` is no module.

    Warns:
        NoEffectWarning: the model has no rectifier that is a module of its own.

    >>> use_bit_mask_relu(nn.Sequential(nn.Linear(2, 2), nn.ReLU()))
    1
    """
    if not isinstance(model, nn.Module):
        raise ConfigError(f"model must be a torch.nn.Module, got {model!r}")
    kinds: list[type[nn.ReLU]] = [nn.ReLU, BitMaskReLU]
    before, after = kinds if on else reversed(kinds)
    found = [module for module in model.modules() if type(module) is before]
    for module in found:
        module.__class__ = after  # pyright: ignore[reportAttributeAccessIssue]
    if not found and not any(type(module) is after for module in model.modules()):
        warnings.warn(
            "the model has no torch.nn.ReLU module; torch.relu and F.relu cannot be replaced",
            NoEffectWarning,
            stacklevel=2,
        )
    return len(found)
