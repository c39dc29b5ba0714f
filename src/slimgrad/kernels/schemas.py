"""Signatures of the operations, as torch's dispatcher and compiler see them."""

from __future__ import annotations

import torch

torch.library.define(
    "slimgrad::topone_weight_grad",
    "(Tensor x, Tensor grad_out, SymInt[2] kernel_size, SymInt[2] stride, SymInt[2] padding,"
    " SymInt[2] dilation, SymInt groups, float scale) -> Tensor",
)

torch.library.define(
    "slimgrad::position_weight_grad",
    "(Tensor x, Tensor grad_out, Tensor? rows, Tensor? weights, Tensor? means,"
    " SymInt[2] kernel_size, SymInt[2] stride, SymInt[2] padding, SymInt[2] dilation,"
    " SymInt groups) -> Tensor",
)
