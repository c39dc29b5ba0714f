"""Top-1 filter gradient of a convolution."""

from __future__ import annotations

import math

import torch

from slimgrad.core.errors import ConfigError
from slimgrad.kernels import backend, schemas  # noqa: F401  (schemas declares the operation)
from slimgrad.kernels.convolution import (
    Pair,
    as_it_lies,
    channels_innermost,
    check_groups,
    check_output_size,
    check_tensors,
    empty_result,
    pair,
)
from slimgrad.kernels.reference import topone as reference

_NAME = "slimgrad::topone_weight_grad"
# Offsets inside a padded sample are 32-bit integers in the native kernel.
_NATIVE_SAMPLE_LIMIT = 2**31


def topone_weight_grad(
    x: torch.Tensor,
    grad_out: torch.Tensor,
    kernel_size: int | Pair,
    stride: int | Pair = 1,
    padding: int | Pair = 0,
    dilation: int | Pair = 1,
    groups: int = 1,
    scale: float = 1.0,
) -> torch.Tensor:
    r"""Filter gradient of a convolution from one place of each map of the output gradient.

    .. math:: A_k = \mathrm{scale} \sum_n S_{nk} X_n[p^*_{nk}], \quad
        p^*_{nk} = \arg\max_p |g_{nkp}|, \quad S_{nk} = \sum_p g_{nkp}

    where :math:`X_n[p]` is the (zero-padded) input patch that output place p sees. Equal
    magnitudes: the lowest p. NaN counts as the largest magnitude, so it shows in the result.
    A map that sums to zero contributes nothing.

    Biased: :math:`A_k - G_k = \sum_{n,p} g_{nkp} (X_n[p^*_{nk}] - X_n[p])` at scale 1, which
    vanishes only where every patch with a gradient equals the chosen one.

    The compiled kernel serves float32 on the CPU; it reads contiguous and channels_last tensors
    where they lie and copies others once. Its result is the same for every instruction set and
    number of threads. Everything else is served by plain torch.

    Args:
        x: layer input, (N, C, H, W), floating point, any strides.
        grad_out: gradient of the loss by the layer's output, (N, K, P, Q), dtype of ``x``.
        kernel_size: (R, S), or one number for both; likewise the next three.
        stride: >= 1.
        padding: zeros on every side, >= 0.
        dilation: >= 1.
        groups: divides C and K.
        scale: finite factor; 1 suits a mean loss, 1/128 is the fixed factor of the paper.

    Returns:
        (K, C / groups, R, S) in the dtype of ``x``; channels_last if channels are the innermost
        dimension of ``x`` (then the sums are formed in this order and need no transposition),
        else contiguous.

    Raises:
        ConfigError: shapes, dtypes or settings do not fit together.

    References:
        Wang, Nelaturu and Amarasinghe (2019), "Accelerated CNN Training Through Gradient
        Approximation", section 2.

    >>> x = torch.arange(1.0, 10.0).reshape(1, 1, 3, 3)
    >>> grad_out = torch.diag(torch.tensor([1.0, -3.0, 1.0])).reshape(1, 1, 3, 3)
    >>> topone_weight_grad(x, grad_out, 3, padding=1).flatten().tolist()
    [-1.0, -2.0, -3.0, -4.0, -5.0, -6.0, -7.0, -8.0, -9.0]
    """
    kernel = pair("kernel_size", kernel_size, 1)
    steps = pair("stride", stride, 1)
    pads = pair("padding", padding, 0)
    spread = pair("dilation", dilation, 1)
    check_tensors(x, grad_out)
    check_groups(x, grad_out, groups)
    check_output_size(x, grad_out, kernel, steps, pads, spread)
    # Not math.isfinite, which code compiled for dynamic shapes cannot trace.
    if not isinstance(scale, int | float) or not -math.inf < scale < math.inf:
        raise ConfigError(f"scale must be a finite number, got {scale!r}")
    return torch.ops.slimgrad.topone_weight_grad(
        x, grad_out, kernel, steps, pads, spread, groups, float(scale)
    )


@torch.library.impl(_NAME, "default")
def _run(
    x: torch.Tensor,
    grad_out: torch.Tensor,
    kernel_size: Pair,
    stride: Pair,
    padding: Pair,
    dilation: Pair,
    groups: int,
    scale: float,
) -> torch.Tensor:
    # The dispatcher hands over lists.
    kernel, steps, pads, spread = ((v[0], v[1]) for v in (kernel_size, stride, padding, dilation))
    geometry = (steps, pads, spread, groups, scale)
    result = empty_result(x, grad_out.shape[1], kernel, groups)
    module = backend.native_module() if _native_serves(x, padding) else None
    if module is None:
        return result.copy_(reference.topone_weight_grad(x, grad_out, kernel, *geometry))
    x_last, grad_last = channels_innermost(x), channels_innermost(grad_out)
    module.topone_weight_grad(
        as_it_lies(x.detach(), x_last),
        as_it_lies(grad_out.detach(), grad_last),
        as_it_lies(result, x_last),
        x_last,
        grad_last,
        x_last,
        *geometry,
        False,
    )
    return result


def _native_serves(x: torch.Tensor, padding: Pair) -> bool:
    channels, rows, columns = x.shape[1:]
    padded = channels * (rows + 2 * padding[0]) * (columns + 2 * padding[1])
    return x.dtype == torch.float32 and x.device.type == "cpu" and padded < _NATIVE_SAMPLE_LIMIT


@torch.library.register_fake(_NAME)
def _shape_only(
    x: torch.Tensor,
    grad_out: torch.Tensor,
    kernel_size: Pair,
    stride: Pair,
    padding: Pair,
    dilation: Pair,
    groups: int,
    scale: float,
) -> torch.Tensor:
    del stride, padding, dilation, scale
    return empty_result(x, grad_out.shape[1], (kernel_size[0], kernel_size[1]), groups)


def _refuse_second_derivative(ctx: object, grad: torch.Tensor) -> None:
    del ctx, grad
    raise ConfigError(
        "the top-1 weight gradient cannot be differentiated again;"
        " use the exact estimator where second derivatives are needed"
    )


torch.library.register_autograd(_NAME, _refuse_second_derivative)
