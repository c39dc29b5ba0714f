"""Products of a matrix and a thin one: argument checks and choice of implementation."""

from __future__ import annotations

import torch

from slimgrad.core.errors import ConfigError
from slimgrad.kernels.backend import native_module
from slimgrad.kernels.reference import thin as reference


def thin_product(
    matrix: torch.Tensor, factor: torch.Tensor, *, transposed: bool = False
) -> torch.Tensor:
    """Matrix @ factor, or matrix.T @ factor, on the calling thread and the same everywhere.

    For a factor of few columns the time is that of reading the matrix. BLAS would use threads of
    its own, and sum in an order that depends on the processor. Every backend and instruction set
    gives the same bits, except for the payload of a NaN.

    Args:
        matrix: (m, n) float32 on the CPU; a strided one is copied.
        factor: (n, r), or (m, r) if transposed, float32 on the CPU.
        transposed: whether the matrix is.

    Returns:
        float32 (m, r), or (n, r) if transposed.

    Raises:
        ConfigError: a dtype, device or shape that does not fit.

    >>> matrix = torch.tensor([[1.0, 2.0], [3.0, 4.0]])
    >>> thin_product(matrix, torch.tensor([[1.0], [0.0]]), transposed=True)
    tensor([[1.],
            [2.]])
    """
    for name, tensor in (("matrix", matrix), ("factor", factor)):
        if tensor.dtype != torch.float32 or tensor.dim() != 2 or tensor.device.type != "cpu":
            raise ConfigError(
                f"{name} must be two-dimensional float32 on the CPU, got shape "
                f"{tuple(tensor.shape)}, {tensor.dtype} on {tensor.device}"
            )
    if factor.shape[0] != matrix.shape[0 if transposed else 1]:
        raise ConfigError(
            f"a factor of shape {tuple(factor.shape)} does not fit a matrix of shape "
            f"{tuple(matrix.shape)}{', transposed' if transposed else ''}"
        )
    matrix, factor = matrix.detach().contiguous(), factor.detach()
    module = native_module()
    if module is None:
        if transposed:
            return reference.thin_product_transposed(matrix, factor)
        return reference.thin_product(matrix, factor)
    rank = factor.shape[1]
    if transposed:
        out = torch.empty(rank, matrix.shape[1])
        module.thin_product(matrix, factor.contiguous(), True, out)
        return out.T
    out = torch.empty(matrix.shape[0], rank)
    module.thin_product(matrix, factor.T.contiguous(), False, out)
    return out
