"""The compiled sum over messages behind the operation's signature."""

from __future__ import annotations

from collections.abc import Sequence
from types import ModuleType
from typing import TYPE_CHECKING

import torch

from slimgrad.kernels.reference.quantize import signed_levels

if TYPE_CHECKING:
    from slimgrad.kernels.summing import PackedVector


def sum_packed_(
    module: ModuleType, out: torch.Tensor, vectors: Sequence[PackedVector], *, serial: bool
) -> torch.Tensor:
    """Sets ``out`` to the sum of ``vectors``, whose tensors are contiguous."""
    total = module.MessageSum()
    alive: list[torch.Tensor] = []
    for vector in vectors:
        packed, scales, bits = vector.packed, vector.scales, vector.bits
        if vector.transform == "dither":
            total.add_dithered(packed, scales, bits, vector.bucket_size, vector.key)
            continue
        values = signed_levels(torch.tensor(vector.levels, dtype=torch.float32), bits)
        alive.append(values)
        if vector.transform == "rotation":
            total.add_rotated(packed, scales, values, bits, vector.key)
        else:
            total.add_levels(packed, scales, values, bits, vector.bucket_size)
    total.run(out, serial)
    return out
