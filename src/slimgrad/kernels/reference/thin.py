"""Products of a matrix and a thin one, sum by sum in a fixed order."""

from __future__ import annotations

import torch

LANES = 16


def thin_product(matrix: torch.Tensor, factor: torch.Tensor) -> torch.Tensor:
    """Matrix (m, n) @ factor (n, r), float32 (m, r).

    >>> thin_product(torch.ones(2, 3), torch.ones(3, 1))
    tensor([[3.],
            [3.]])
    """
    m, n = matrix.shape
    groups = -(-n // LANES)
    wide = torch.zeros(m, groups * LANES)
    tall = torch.zeros(groups * LANES, factor.shape[1])
    wide[:, :n], tall[:n] = matrix, factor
    lanes = torch.zeros(m, LANES, factor.shape[1])
    for g in range(groups):
        part = slice(g * LANES, (g + 1) * LANES)
        lanes = lanes + wide[:, part, None] * tall[None, part, :]
    while lanes.shape[1] > 1:
        half = lanes.shape[1] // 2
        lanes = lanes[:, :half] + lanes[:, half:]
    return lanes[:, 0]


def thin_product_transposed(matrix: torch.Tensor, factor: torch.Tensor) -> torch.Tensor:
    """matrix.T (n, m) @ factor (m, r), float32 (n, r).

    >>> thin_product_transposed(torch.ones(2, 3), torch.ones(2, 1)).flatten()
    tensor([2., 2., 2.])
    """
    total = torch.zeros(matrix.shape[1], factor.shape[1])
    for row, weights in zip(matrix, factor, strict=True):
        total = total + row[:, None] * weights
    return total
