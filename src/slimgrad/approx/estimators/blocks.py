"""Output positions in square blocks: what block means and Walsh terms are built from."""

from __future__ import annotations

import math
from collections.abc import Sequence

import torch
import torch.nn.functional as F

from slimgrad import kernels
from slimgrad.approx.estimators.base import LayerGeometry, Pair
from slimgrad.approx.estimators.maps import Maps, as_maps


def as_blocks(x: torch.Tensor, grad_out: torch.Tensor, geometry: LayerGeometry, block: int) -> Maps:
    """The layer as maps that whole blocks tile, without padding: its zeros are written out.

    Positions added for it have no gradient. A block of a linear layer is block^2 neighbours in the
    order of its positions.

    >>> maps = as_blocks(torch.ones(9, 3), torch.ones(9, 5), LayerGeometry("linear", (5, 3)), 2)
    >>> maps.x.shape, maps.grad_out.shape
    (torch.Size([1, 3, 6, 2]), torch.Size([1, 5, 6, 2]))
    """
    maps = as_maps(x, grad_out, geometry)
    # Sums over neighbours are quickest in the layout that the kernel works on.
    x, grad_out = (t.contiguous(memory_format=torch.channels_last) for t in (maps.x, maps.grad_out))
    if geometry.kind == "linear":
        lacking = -maps.positions % block**2
        x, grad_out = (
            _pad(t, (0, 0, 0, lacking)).unflatten(2, (-1, block)).squeeze(-1) for t in (x, grad_out)
        )
    else:
        lacking = [-size % block for size in grad_out.shape[2:]]
        ends = []
        for axis in (0, 1):
            last = (grad_out.shape[2 + axis] + lacking[axis] - 1) * maps.stride[axis]
            seen = last + maps.dilation[axis] * (maps.kernel_size[axis] - 1) + 1
            # Below zero where no position sees the end of the input.
            ends.append(seen - x.shape[2 + axis] - maps.padding[axis])
        x = _pad(x, (maps.padding[1], ends[1], maps.padding[0], ends[0]))
        grad_out = _pad(grad_out, (0, lacking[1], 0, lacking[0]))
    return Maps(x, grad_out, maps.kernel_size, maps.stride, (0, 0), maps.dilation, maps.groups)


def _pad(tensor: torch.Tensor, ends: Sequence[int]) -> torch.Tensor:
    return F.pad(tensor, list(ends)) if any(ends) else tensor


def gradient_sums(grad_out: torch.Tensor, block: int) -> torch.Tensor:
    """Sums over blocks of (N, K, P, Q), which they tile: (N, K, P / block, Q / block)."""
    ones = (1,) * block
    total = _signed([grad_out[:, :, a::block] for a in range(block)], ones)
    return _signed([total[..., b::block] for b in range(block)], ones)


def block_weight_grad(
    maps: Maps, rows: Sequence[int], columns: Sequence[int], gradients: torch.Tensor
) -> torch.Tensor:
    """Sum over blocks of gradient times the signed sum of the patches of the block.

    Args:
        maps: the layer in blocks.
        rows: sign of every row of a block, 1 or -1, the first 1.
        columns: sign of every column; patch (a, b) counts ``rows[a] * columns[b]`` times.
        gradients: of every block, (N, K, P / block, Q / block).

    Returns:
        (K, C / groups, R, S).
    """
    stride = (len(rows) * maps.stride[0], len(rows) * maps.stride[1])
    return kernels.position_weight_grad(
        _input_sums(maps.x, maps.stride, rows, columns),
        gradients,
        maps.kernel_size,
        stride,
        dilation=maps.dilation,
        groups=maps.groups,
    )


def _input_sums(
    x: torch.Tensor, stride: Pair, rows: Sequence[int], columns: Sequence[int]
) -> torch.Tensor:
    """At every place the signed sum of the input over the block that begins there."""
    for axis, signs in ((2, rows), (3, columns)):
        step = stride[axis - 2]
        length = x.shape[axis] - step * (len(signs) - 1)
        x = _signed([x.narrow(axis, a * step, length) for a in range(len(signs))], signs)
    return x


def _signed(parts: Sequence[torch.Tensor], signs: Sequence[int]) -> torch.Tensor:
    """Sum of at least two parts times their signs, of which the first is 1; a copy."""
    total = torch.add(parts[0], parts[1], alpha=signs[1])
    for part, sign in zip(parts[2:], signs[2:], strict=True):
        total.add_(part, alpha=sign)
    return total


def block_macs(geometry: LayerGeometry, grad_out_shape: tuple[int, ...], block: int) -> int:
    """Multiply-adds of one sum over blocks."""
    if geometry.kind == "linear":
        samples = grad_out_shape[0] if len(grad_out_shape) > 2 else 1
        positions = -(-(math.prod(grad_out_shape[:-1]) // max(samples, 1)) // block**2)
        return geometry.weight_grad_macs((samples, positions, geometry.weight_shape[0]))
    rows, columns = (-(-size // block) for size in grad_out_shape[2:])
    return geometry.weight_grad_macs((*grad_out_shape[:2], rows, columns))
