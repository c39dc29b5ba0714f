"""The k largest magnitudes of a vector, by sorting."""

from __future__ import annotations

import torch


def topk_places(vector: torch.Tensor, k: int) -> torch.Tensor:
    """Places of the k largest magnitudes of a flat float32 ``vector``, ascending.

    >>> topk_places(torch.tensor([1.0, -3.0, 2.0, 3.0]), 2)
    tensor([1, 3])
    """
    # As integers the bits of magnitudes are in the order of the numbers, with NaN at the end.
    magnitude = vector.view(torch.int32) & 0x7FFFFFFF
    order = torch.sort(magnitude, descending=True, stable=True).indices
    return order[:k].sort().values
