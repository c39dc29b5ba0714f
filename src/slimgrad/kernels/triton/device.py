"""Where Triton kernels can run."""

from __future__ import annotations

import torch
import triton

from slimgrad.core.errors import BackendError, ConfigError

# Kernels are compiled or interpreted as the setting was when they were defined.
INTERPRETED = bool(triton.knobs.runtime.interpret)


def check_flat(name: str, tensor: torch.Tensor, dtype: torch.dtype) -> None:
    """Refuses a tensor that a kernel cannot read.

    Raises:
        ConfigError: not flat, not contiguous, or of another dtype.
        BackendError: not on a GPU while kernels are compiled.
    """
    if tensor.dtype != dtype or tensor.dim() != 1 or not tensor.is_contiguous():
        raise ConfigError(
            f"{name} must be flat, contiguous and {dtype}, "
            f"got shape {tuple(tensor.shape)}, {tensor.dtype}"
        )
    if tensor.device.type == "cpu" and not INTERPRETED:
        raise BackendError(
            f"{name} is on the CPU, where Triton kernels run only in the interpreter; "
            "move it to a GPU, or use slimgrad.kernels"
        )
