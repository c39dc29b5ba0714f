"""Elementwise work that stays on the calling thread.

The communication thread must not start a second team of threads beside the one that runs the
backward pass. Torch keeps elementwise work of fewer than 32,768 components on the calling thread.
"""

from __future__ import annotations

from collections.abc import Iterator

import torch

PIECE = 16384


def pieces(tensor: torch.Tensor, *, serial: bool = True) -> Iterator[torch.Tensor]:
    """Views of a flat tensor, short enough for torch to stay on this thread.

    >>> [piece.numel() for piece in pieces(torch.zeros(20000))]
    [16384, 3616]
    """
    step = PIECE if serial else max(tensor.numel(), 1)
    for start in range(0, tensor.numel(), step):
        yield tensor[start : start + step]


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
