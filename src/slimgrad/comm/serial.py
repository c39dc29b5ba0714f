"""Elementwise work that stays on the calling thread.

The communication thread must not start a second team of threads beside the one that runs the
backward pass. numpy never does; torch does not for fewer than 32,768 components, so dtypes that
numpy lacks are worked on in pieces.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import torch

PIECE = 16384
_CACHED = 65536  # components whose check is still in the cache when it is summed up
_NUMPY_DTYPES = (torch.float32, torch.float64)


def pieces(tensor: torch.Tensor, *, serial: bool = True) -> Iterator[torch.Tensor]:
    """Views of a flat tensor, short enough for torch to stay on this thread.

    >>> [piece.numel() for piece in pieces(torch.zeros(20000))]
    [16384, 3616]
    """
    step = PIECE if serial else max(tensor.numel(), 1)
    for start in range(0, tensor.numel(), step):
        yield tensor[start : start + step]


def all_finite(tensor: torch.Tensor) -> bool:
    """Whether no component of a flat float32 or float64 tensor is infinite or NaN.

    >>> all_finite(torch.ones(3)), all_finite(torch.tensor([1.0, float("inf")]))
    (True, False)
    """
    values = tensor.numpy()
    starts = range(0, len(values), _CACHED)
    return all(bool(np.isfinite(values[start : start + _CACHED]).all()) for start in starts)


def zero_(tensor: torch.Tensor) -> None:
    """Set a flat float32 or float64 tensor to zero."""
    tensor.view(torch.uint8).numpy().fill(0)


def divide_(tensor: torch.Tensor, divisor: int) -> None:
    """Divide a flat float32 or float64 tensor in place, each quotient rounded correctly."""
    values = tensor.numpy()
    np.divide(values, values.dtype.type(divisor), out=values)


def multiply_(tensor: torch.Tensor, factor: float) -> None:
    """Multiply a flat tensor in place, with the rounding of ``tensor.mul_(factor)``."""
    if tensor.dtype in _NUMPY_DTYPES:
        values = tensor.numpy()
        np.multiply(values, values.dtype.type(factor), out=values)
    else:
        for piece in pieces(tensor):
            piece.mul_(factor)


def copy_(out: torch.Tensor, values: torch.Tensor, *, serial: bool = True) -> torch.Tensor:
    """Copy ``values`` into ``out``, converting the dtype; both flat."""
    parts = zip(pieces(out, serial=serial), pieces(values, serial=serial), strict=True)
    for target, source in parts:
        target.copy_(source)
    return out


def add_(
    out: torch.Tensor, values: torch.Tensor, alpha: float = 1.0, *, serial: bool = True
) -> torch.Tensor:
    """Add alpha times ``values`` to ``out`` in the dtype of ``out``; both flat."""
    parts = zip(pieces(out, serial=serial), pieces(values, serial=serial), strict=True)
    for target, source in parts:
        term = source.to(out.dtype)
        target.add_(term if alpha == 1.0 else term * alpha)
    return out
