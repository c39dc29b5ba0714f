"""Checks that the operations on vectors and symbols share."""

from __future__ import annotations

import torch

from slimgrad.core.errors import ConfigError

MIN_BITS, MAX_BITS = 1, 8


def is_integer(value: object) -> bool:
    """Whether ``value`` is an int and no bool."""
    return isinstance(value, int) and not isinstance(value, bool)


def check_vector(name: str, tensor: torch.Tensor, dtype: torch.dtype) -> None:
    """ConfigError unless ``tensor`` is flat, of ``dtype`` and on the CPU."""
    if tensor.dtype != dtype or tensor.dim() != 1 or tensor.device.type != "cpu":
        raise ConfigError(
            f"{name} must be flat, {dtype} and on the CPU, got shape {tuple(tensor.shape)}, "
            f"{tensor.dtype} on {tensor.device}"
        )


def check_size(name: str, tensor: torch.Tensor, dtype: torch.dtype, size: int) -> None:
    """ConfigError unless ``tensor`` is as in check_vector and has ``size`` elements."""
    check_vector(name, tensor, dtype)
    if len(tensor) != size:
        raise ConfigError(f"{name} must have {size} elements, got {len(tensor)}")


def check_count(n: int) -> None:
    """ConfigError unless ``n`` is an integer >= 0."""
    if not is_integer(n) or n < 0:
        raise ConfigError(f"n must be an integer >= 0, got {n!r}")


def check_bits(bits: int, least: int = MIN_BITS) -> None:
    """ConfigError unless ``bits`` is an integer from ``least`` to 8."""
    if not is_integer(bits) or not least <= bits <= MAX_BITS:
        raise ConfigError(f"bits must be an integer from {least} to {MAX_BITS}, got {bits!r}")


def check_bucket_size(bucket_size: int) -> None:
    """ConfigError unless ``bucket_size`` is an integer from 1 to 2**62."""
    if not is_integer(bucket_size) or not 1 <= bucket_size < 1 << 62:
        raise ConfigError(f"bucket_size must be an integer from 1 to 2**62, got {bucket_size!r}")


def check_key(key: int) -> None:
    """ConfigError unless ``key`` can name a random stream."""
    if not is_integer(key) or not 0 <= key < 1 << 64:
        raise ConfigError(f"key must be an integer in [0, 2**64), got {key!r}")


def check_sum_target(out: torch.Tensor, alpha: float) -> None:
    """ConfigError unless ``out`` can be added to in place, with factor ``alpha``."""
    check_vector("out", out, torch.float32)
    if not out.is_contiguous():
        raise ConfigError("out must be contiguous, it is changed in place; pass a flat copy")
    if out.requires_grad:
        raise ConfigError("out must not require grad, it is changed in place; pass out.detach()")
    if not abs(alpha) <= torch.finfo(torch.float32).max:
        raise ConfigError(f"alpha must be finite in float32, got {alpha!r}")


def note_change(out: torch.Tensor) -> None:
    """Let autograd see that a kernel changed ``out``, as it does with torch's own operations."""
    if not out.is_inference():
        torch.autograd.graph.increment_version(out)
