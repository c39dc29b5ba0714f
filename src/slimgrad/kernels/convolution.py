"""What the operations on convolutions share: checks of their arguments, and memory layouts."""

from __future__ import annotations

import torch

from slimgrad.core.errors import ConfigError

Pair = tuple[int, int]


def pair(name: str, value: int | Pair, least: int) -> Pair:
    """``value`` for rows and columns; ConfigError unless integers >= ``least``."""
    pair = tuple(value) if isinstance(value, tuple | list) else (value, value)
    if len(pair) != 2 or any(not isinstance(v, int) or v < least for v in pair):
        raise ConfigError(f"{name} must be an integer >= {least} or two of them, got {value!r}")
    return pair


def check_tensors(x: torch.Tensor, grad_out: torch.Tensor) -> None:
    """ConfigError unless input and output gradient can belong to one convolution."""
    for name, tensor in (("x", x), ("grad_out", grad_out)):
        if tensor.dim() != 4:
            raise ConfigError(
                f"{name} must have 4 dimensions (samples, channels, rows, columns),"
                f" got shape {tuple(tensor.shape)}"
            )
    if x.dtype != grad_out.dtype or not x.dtype.is_floating_point:
        raise ConfigError(
            f"x and grad_out must share one floating-point dtype, got {x.dtype}"
            f" and {grad_out.dtype}; convert one of them"
        )
    if x.device != grad_out.device:
        raise ConfigError(
            f"x and grad_out must be on one device, got {x.device} and {grad_out.device}"
        )
    if x.shape[0] != grad_out.shape[0]:
        raise ConfigError(
            f"x has {x.shape[0]} samples but grad_out has {grad_out.shape[0]}; they must agree"
        )


def check_groups(x: torch.Tensor, grad_out: torch.Tensor, groups: int) -> None:
    """ConfigError unless ``groups`` divides channels and filters."""
    channels, filters = x.shape[1], grad_out.shape[1]
    if not isinstance(groups, int) or groups < 1 or channels % groups or filters % groups:
        raise ConfigError(
            f"groups must be an integer >= 1 and divide the {channels} channels of x and the"
            f" {filters} of grad_out, got {groups!r}"
        )


def check_output_size(
    x: torch.Tensor, grad_out: torch.Tensor, kernel: Pair, stride: Pair, padding: Pair, spread: Pair
) -> None:
    """ConfigError unless the output gradient has the size the convolution gives."""
    for axis in (0, 1):
        reach = spread[axis] * (kernel[axis] - 1) + 1
        room = x.shape[2 + axis] + 2 * padding[axis] - reach
        size = room // stride[axis] + 1 if room >= 0 else 0
        if size < 1 or grad_out.shape[2 + axis] != size:
            raise ConfigError(
                f"grad_out has {grad_out.shape[2 + axis]} {('rows', 'columns')[axis]}, but x with"
                f" {x.shape[2 + axis]}, kernel {kernel[axis]}, stride {stride[axis]}, padding"
                f" {padding[axis]} and dilation {spread[axis]} gives {size}"
            )


def channels_innermost(tensor: torch.Tensor) -> bool:
    """Whether to treat ``tensor`` as channels_last; ambiguous ones count as contiguous."""
    return not tensor.is_contiguous() and tensor.stride(1) == 1


def empty_result(x: torch.Tensor, filters: int, kernel: Pair, groups: int) -> torch.Tensor:
    """An uninitialised weight gradient, in the layout of ``x``."""
    last = channels_innermost(x)
    return x.new_empty((filters, x.shape[1] // groups, *kernel)).contiguous(
        memory_format=torch.channels_last if last else torch.contiguous_format
    )


def as_it_lies(tensor: torch.Tensor, last: bool) -> torch.Tensor:
    """A contiguous view of the memory, (N, H, W, C) if ``last``; a copy only where unavoidable."""
    if last:
        return tensor.contiguous(memory_format=torch.channels_last).permute(0, 2, 3, 1)
    return tensor.contiguous()
