"""One bit an element: which elements are above zero, and an array masked by such bits."""

from __future__ import annotations

import numpy as np
import torch

from slimgrad.core.errors import ConfigError
from slimgrad.kernels.backend import native_module


def pack_positive(values: torch.Tensor) -> torch.Tensor:
    """Bits that are set where a component is above zero or NaN.

    Args:
        values: flat, floating point, on the CPU.

    Returns:
        uint8 (ceil(n / 8),): component i in bit i mod 8 of byte i div 8; the rest is 0.

    Raises:
        ConfigError: another shape, dtype or device.

    >>> pack_positive(torch.tensor([1.0, -1.0, 0.0, 2.0])).tolist()
    [9]
    """
    _check(values)
    values = values.detach().contiguous()
    module = native_module() if values.dtype == torch.float32 else None
    if module is None:
        packed = np.packbits((~(values <= 0)).numpy(), bitorder="little")
        return torch.from_numpy(packed)
    bits = torch.empty(-(-len(values) // 8), dtype=torch.uint8)
    module.pack_positive(values, bits)
    return bits


def apply_mask(values: torch.Tensor, bits: torch.Tensor) -> torch.Tensor:
    """``values`` where the bit is set, 0 elsewhere.

    Args:
        values: flat, floating point, on the CPU.
        bits: as pack_positive makes them for as many components.

    Raises:
        ConfigError: another shape, dtype or device, or bits of another length.

    >>> apply_mask(torch.tensor([5.0, 6.0]), torch.tensor([2], dtype=torch.uint8)).tolist()
    [0.0, 6.0]
    """
    _check(values)
    if bits.dtype != torch.uint8 or bits.shape != (-(-len(values) // 8),):
        raise ConfigError(
            f"{len(values)} components need {-(-len(values) // 8)} bytes of bits, "
            f"got {bits.dtype} {tuple(bits.shape)}"
        )
    values, bits = values.detach().contiguous(), bits.contiguous()
    module = native_module() if values.dtype == torch.float32 else None
    if module is None:
        kept = np.unpackbits(bits.numpy(), count=len(values), bitorder="little")
        return torch.where(torch.from_numpy(kept).bool(), values, values.new_zeros(()))
    out = torch.empty_like(values)
    module.apply_mask(values, bits, out)
    return out


def _check(values: torch.Tensor) -> None:
    if values.dim() != 1 or not values.is_floating_point() or values.device.type != "cpu":
        raise ConfigError(
            "values must be flat, floating point and on the CPU, got "
            f"{values.dtype} {tuple(values.shape)} on {values.device}"
        )
