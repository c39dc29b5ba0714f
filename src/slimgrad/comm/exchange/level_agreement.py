"""All ranks choose the levels of adaptive quantizers from the counts of all of them."""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np
import torch

from slimgrad.comm.exchange.channel import Channel
from slimgrad.comm.quantizers.adaptive import BINS, AdaptiveQuantizer
from slimgrad.comm.serial import copy_


def refresh_levels(
    quantizer: object, tensors: Iterable[tuple[str, torch.Tensor]], channel: Channel, step: int
) -> None:
    """Choose levels anew where ``quantizer`` adapts and ``step`` is one of its refreshes.

    Counts are added in rank order in float64, so all ranks compute with the same numbers.

    Args:
        quantizer: any; those that do not adapt are left alone.
        tensors: names and flat values, the same names in the same order on all ranks; looked at
            in a refresh only.
        channel: the ranks.
        step: synchronised backward pass.
    """
    if not isinstance(quantizer, AdaptiveQuantizer) or not quantizer.is_due(step):
        return
    tensors = list(tensors)
    if not tensors:
        return
    with channel.meter.codec():
        counts = np.stack([quantizer.counts(_float32(values)) for _, values in tensors])
        message = torch.from_numpy(counts.astype("<f8").view(np.uint8).reshape(-1))
    with channel.meter.wire():
        messages = channel.gather_bytes(message, same_length=True, limit_bytes=message.numel())
    channel.meter.count_sent(0, 0, message.numel())
    with channel.meter.codec():
        total = np.zeros((len(tensors), BINS))
        for received in messages:
            total += received.numpy().copy().view("<f8").reshape(total.shape)
        for (name, _), counted in zip(tensors, total, strict=True):
            quantizer.refresh(name, counted)


def _float32(values: torch.Tensor) -> torch.Tensor:
    if values.dtype == torch.float32:
        return values
    return copy_(torch.empty(values.numel(), dtype=torch.float32), values)
