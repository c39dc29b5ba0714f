"""Weight gradients of convolutions from chosen output positions, and how to choose them."""

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
    pair,
)
from slimgrad.kernels.reference import positions as reference

_NAME = "slimgrad::position_weight_grad"
_NATIVE_LIMIT = 2**31  # places are 32-bit integers


def position_weight_grad(
    x: torch.Tensor,
    grad_out: torch.Tensor,
    kernel_size: int | Pair,
    stride: int | Pair = 1,
    padding: int | Pair = 0,
    dilation: int | Pair = 1,
    groups: int = 1,
    *,
    rows: torch.Tensor | None = None,
    weights: torch.Tensor | None = None,
    means: torch.Tensor | None = None,
) -> torch.Tensor:
    r"""Weighted sum, over chosen output positions, of output gradient times input patch.

    .. math:: A_k = \sum_i w_i (g_{r_i k} - m_{n(r_i) k}) X[r_i]

    where row r = (n, p, q) numbers the output positions in that order and :math:`X[r]` is the
    zero-padded patch that position r sees. With all rows, weights 1 and no means this is the exact
    weight gradient, up to the rounding of float32 sums.

    The compiled kernel serves float32 on the CPU and works on channels last; other layouts are
    copied once. Its result does not depend on the number of threads. Everything else is served by
    plain torch.

    Args:
        x: layer input, (N, C, H, W), floating point, any strides.
        grad_out: gradient of the loss by the layer's output, (N, K, P, Q), dtype of ``x``.
        kernel_size: (R, S), or one number for both; likewise the next three.
        stride: >= 1.
        padding: zeros on every side, >= 0.
        dilation: >= 1.
        groups: divides C and K.
        rows: int32, ascending without repetition, each in [0, N P Q); None for all.
        weights: float32, one a row; needs ``rows``.
        means: (N, K), dtype of ``x``; taken off the gradient of each sample; None for zeros.

    Returns:
        (K, C / groups, R, S) in the dtype of ``x``, channels_last where ``x`` is, else contiguous.

    Raises:
        ConfigError: shapes, dtypes or settings do not fit together.

    >>> x = torch.arange(1.0, 10.0).reshape(1, 1, 3, 3)
    >>> grad_out = torch.diag(torch.tensor([1.0, -3.0, 1.0])).reshape(1, 1, 3, 3)
    >>> position_weight_grad(x, grad_out, 3, padding=1).flatten().tolist()
    [2.0, 0.0, -9.0, -4.0, -5.0, -16.0, -21.0, -20.0, -22.0]
    >>> rows, weights = torch.tensor([4], dtype=torch.int32), torch.tensor([2.0])
    >>> position_weight_grad(x, grad_out, 1, rows=rows, weights=weights).item()
    -30.0
    """
    kernel, steps = pair("kernel_size", kernel_size, 1), pair("stride", stride, 1)
    pads, spread = pair("padding", padding, 0), pair("dilation", dilation, 1)
    check_tensors(x, grad_out)
    check_groups(x, grad_out, groups)
    check_output_size(x, grad_out, kernel, steps, pads, spread)
    if (rows is None) != (weights is None):
        raise ConfigError("rows and weights belong together: give both or none")
    if rows is not None and weights is not None:
        _check_rows(rows, weights, grad_out)
    if means is not None and (means.shape != grad_out.shape[:2] or means.dtype != x.dtype):
        raise ConfigError(
            f"means must be {x.dtype} of shape {tuple(grad_out.shape[:2])}, "
            f"got {means.dtype} {tuple(means.shape)}"
        )
    return torch.ops.slimgrad.position_weight_grad(
        x, grad_out, rows, weights, means, kernel, steps, pads, spread, groups
    )


def _check_rows(rows: torch.Tensor, weights: torch.Tensor, grad_out: torch.Tensor) -> None:
    if rows.dtype != torch.int32 or weights.dtype != torch.float32 or rows.dim() != 1:
        raise ConfigError(
            f"rows must be flat int32 and weights float32, got {rows.dtype} {tuple(rows.shape)} "
            f"and {weights.dtype}"
        )
    if rows.shape != weights.shape:
        raise ConfigError(f"{len(rows)} rows need as many weights, got {tuple(weights.shape)}")
    if len(rows):
        positions = grad_out.numel() // grad_out.shape[1]
        first, last = int(rows[0]), int(rows[-1])
        if first < 0 or last >= positions or bool((rows[1:] <= rows[:-1]).any()):
            raise ConfigError(f"rows must ascend strictly within 0 to {positions - 1}")


@torch.library.impl(_NAME, "default")
def _run(
    x: torch.Tensor,
    grad_out: torch.Tensor,
    rows: torch.Tensor | None,
    weights: torch.Tensor | None,
    means: torch.Tensor | None,
    kernel_size: Pair,
    stride: Pair,
    padding: Pair,
    dilation: Pair,
    groups: int,
) -> torch.Tensor:
    # The dispatcher hands over lists.
    kernel, steps, pads, spread = ((v[0], v[1]) for v in (kernel_size, stride, padding, dilation))
    geometry = (steps, pads, spread, groups)
    module = backend.native_module() if _native_serves(x, grad_out) else None
    if module is None:
        result = reference.position_weight_grad(
            x, grad_out, rows, weights, means, kernel, *geometry
        )
        return _in_layout_of(x, result)
    out = x.new_empty((grad_out.shape[1], *kernel, x.shape[1] // groups))
    none = x.new_empty(0)
    module.position_weight_grad(
        as_it_lies(x.detach(), last=True),
        as_it_lies(grad_out.detach(), last=True),
        none.int() if rows is None else rows.contiguous(),
        none if weights is None else weights.detach().contiguous(),
        rows is None,
        none.view(0, 0) if means is None else means.detach().contiguous(),
        out,
        *geometry,
        False,
    )
    return _in_layout_of(x, out.permute(0, 3, 1, 2))


def _in_layout_of(x: torch.Tensor, result: torch.Tensor) -> torch.Tensor:
    if channels_innermost(x):
        return result.contiguous(memory_format=torch.channels_last)
    return result.contiguous()


def _native_serves(x: torch.Tensor, grad_out: torch.Tensor) -> bool:
    small = max(x.numel(), grad_out.numel()) < _NATIVE_LIMIT
    return x.dtype == torch.float32 and x.device.type == "cpu" and small


@torch.library.register_fake(_NAME)
def _shape_only(
    x: torch.Tensor,
    grad_out: torch.Tensor,
    rows: torch.Tensor | None,
    weights: torch.Tensor | None,
    means: torch.Tensor | None,
    kernel_size: Pair,
    stride: Pair,
    padding: Pair,
    dilation: Pair,
    groups: int,
) -> torch.Tensor:
    del rows, weights, means, stride, padding, dilation
    shape = (grad_out.shape[1], x.shape[1] // groups, kernel_size[0], kernel_size[1])
    return _in_layout_of(x, x.new_empty(shape))


def _refuse_second_derivative(ctx: object, grad: torch.Tensor) -> None:
    del ctx, grad
    raise ConfigError(
        "the weight gradient of chosen positions cannot be differentiated again;"
        " use the exact estimator where second derivatives are needed"
    )


torch.library.register_autograd(_NAME, _refuse_second_derivative)


def systematic_sample(
    scores: torch.Tensor, wanted: float, start: float
) -> tuple[torch.Tensor, torch.Tensor]:
    """Choose rows with probability min(1, score / t), one random number for all of them.

    t is set so that the probabilities add up to ``wanted`` within about a percent. Rows are passed
    in order, and one is taken each time the running sum of probabilities, begun at ``start``,
    passes a whole number. With ``start`` uniform over [0, 1) a row is taken with exactly its
    probability, and weighted by its inverse: sums over the rows are unbiased.

    Args:
        scores: flat float32 on the CPU, finite, >= 0.
        wanted: expected number of rows, > 0.
        start: in [0, 1).

    Returns:
        Rows, int32, ascending, and weights, float32, >= 1; none where all scores are 0. Where a
        score is not finite, all rows with weight 1.

    Raises:
        ConfigError: an argument outside these ranges.

    References:
        Madow (1949), "On the theory of systematic sampling, II".

    >>> rows, weights = systematic_sample(torch.tensor([1.0, 0.0, 1.0, 6.0]), 2, start=0.6)
    >>> rows.tolist(), weights.tolist()
    ([0, 3], [2.0, 1.0])
    """
    if scores.dtype != torch.float32 or scores.dim() != 1 or scores.device.type != "cpu":
        raise ConfigError(
            f"scores must be flat float32 on the CPU, got {scores.dtype} {tuple(scores.shape)} "
            f"on {scores.device}"
        )
    if not 0 < wanted < math.inf or not 0 <= start < 1:
        raise ConfigError(f"wanted must be above 0 and start in [0, 1), got {wanted!r}, {start!r}")
    scores = scores.detach().contiguous()
    if len(scores) and not math.isfinite(float(scores.sum())):
        return torch.arange(len(scores), dtype=torch.int32), torch.ones(len(scores))
    module = backend.native_module()
    if module is None:
        return reference.systematic_sample(scores, wanted, start)
    rows = torch.empty(len(scores), dtype=torch.int32)
    weights = torch.empty(len(scores))
    count = module.systematic_sample(scores, wanted, start, rows, weights)
    return rows[:count], weights[:count]


def row_norms(grad_out: torch.Tensor) -> torch.Tensor:
    """Euclidean norm of the output gradient of every position.

    Args:
        grad_out: (N, K, P, Q), floating point, any strides.

    Returns:
        float32 (N P Q,), positions in the order (n, p, q).

    >>> row_norms(torch.tensor([[[[3.0, 0.0]], [[4.0, 1.0]]]])).tolist()
    [5.0, 1.0]
    """
    module = backend.native_module() if _native_serves(grad_out, grad_out) else None
    if module is None:
        return reference.row_norms(grad_out).float()
    matrix = as_it_lies(grad_out.detach(), last=True).flatten(0, 2)
    norms = torch.empty(len(matrix))
    module.row_norms(matrix, norms, False)
    return norms


def centred_row_norms(grad_out: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
    """Mean output gradient of every sample, and the norms of the positions about it.

    Args:
        grad_out: (N, K, P, Q), floating point, any strides, P Q >= 1.

    Returns:
        Means (N, K) in the dtype of ``grad_out``, norms float32 (N P Q,).

    >>> means, norms = centred_row_norms(torch.tensor([[[[3.0, 1.0]]]]))
    >>> means.tolist(), norms.tolist()
    ([[2.0]], [1.0, 1.0])
    """
    module = backend.native_module() if _native_serves(grad_out, grad_out) else None
    if module is None:
        means, norms = reference.centred_row_norms(grad_out)
        return means, norms.float()
    rows = as_it_lies(grad_out.detach(), last=True).flatten(1, 2)
    means = torch.empty(len(rows), rows.shape[2])
    norms = torch.empty(rows.shape[:2])
    module.centred_row_norms(rows, means, norms, False)
    return means, norms.flatten()


def patch_sums(
    x: torch.Tensor, kernel_size: Pair, stride: Pair, padding: Pair, dilation: Pair
) -> torch.Tensor:
    """Sum over output positions of every sample's input patches, zeros outside the input.

    Args:
        x: (N, C, H, W), floating point, any strides.
        kernel_size: (rows, columns) of a convolution that fits; likewise the next three.
        stride: between output positions.
        padding: zeros on every side.
        dilation: between taps.

    Returns:
        (N, C, R, S) in the dtype of ``x``.

    >>> patch_sums(torch.ones(1, 1, 3, 3), (2, 2), (1, 1), (0, 0), (1, 1)).flatten().tolist()
    [4.0, 4.0, 4.0, 4.0]
    """
    module = backend.native_module() if _native_serves(x, x) else None
    if module is None:
        return reference.patch_sums(x, kernel_size, stride, padding, dilation)
    sums = torch.empty(len(x), *kernel_size, x.shape[1])
    sizes = (
        (x.shape[2 + axis] + 2 * padding[axis] - dilation[axis] * (kernel_size[axis] - 1) - 1)
        // stride[axis]
        + 1
        for axis in (0, 1)
    )
    module.patch_sums(
        as_it_lies(x.detach(), last=True), sums, tuple(sizes), stride, padding, dilation, False
    )
    return sums.permute(0, 3, 1, 2)
