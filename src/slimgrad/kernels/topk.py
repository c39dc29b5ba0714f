"""The places of the largest magnitudes: argument checks and choice of implementation."""

from __future__ import annotations

import torch

from slimgrad.core.errors import ConfigError
from slimgrad.kernels.backend import native_module
from slimgrad.kernels.checks import check_vector, is_integer
from slimgrad.kernels.reference import topk as reference

# The compiled kernel holds places of candidates in 32 bits.
MAX_COMPONENTS = 2**32 - 1


def topk_places(vector: torch.Tensor, k: int) -> torch.Tensor:
    """Places of the k components of largest magnitude, in ascending order.

    Exactly k, whatever ties there are: of equal magnitudes those with the lowest places are kept.
    NaN counts as larger than infinity. Stays on the calling thread. Every backend and instruction
    set gives the same places.

    Args:
        vector: (n,) float32 on the CPU, n < 2**32; a strided one is copied.
        k: from 0 to n.

    Returns:
        int64 (k,).

    Raises:
        ConfigError: an argument outside the ranges above.

    >>> topk_places(torch.tensor([0.5, -3.0, 2.0, 0.5]), 3)
    tensor([0, 1, 2])
    """
    check_vector("vector", vector, torch.float32)
    n = len(vector)
    if n > MAX_COMPONENTS:
        raise ConfigError(f"vector has {n} components, at most {MAX_COMPONENTS} can be selected")
    if not is_integer(k) or not 0 <= k <= n:
        raise ConfigError(f"k must be an integer from 0 to {n}, got {k!r}")
    vector = vector.detach().contiguous()
    module = native_module()
    if module is None:
        return reference.topk_places(vector, k)
    places = torch.empty(k, dtype=torch.int64)
    module.topk_places(vector, places)
    return places
