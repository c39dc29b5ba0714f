"""Exact exchange: the operations of DDP itself."""

from __future__ import annotations

from typing import ClassVar, final

import torch.distributed as dist

from slimgrad.comm.compressor import Compressor
from slimgrad.comm.exchange.base import Exchange, GradientBucket
from slimgrad.comm.exchange.channel import Channel
from slimgrad.comm.serial import multiply_


@final
class AllReduce(Exchange):
    """Multiply by 1 / world_size, then sum over ranks by all-reduce, in the bucket's dtype.

    Guarantee: the bits of DDP without a communication hook. One exception: where DDP finds the
    gradient already in its bucket (``gradient_as_bucket_view=True`` and gradients that were
    accumulated or zeroed in place) it divides instead of multiplying, which for numbers of ranks
    that are not powers of two can change the last bit.
    """

    name: ClassVar[str] = "all_reduce"
    compresses: ClassVar[bool] = False

    def average(
        self,
        bucket: GradientBucket,
        compressor: Compressor,
        channel: Channel,
        *,
        step: int,
        seed: int,
    ) -> None:
        """Replace the bucket's values by their mean; ``compressor`` is not used."""
        values = bucket.values
        multiply_(values, 1.0 / channel.world_size)
        with channel.meter.wire():
            dist.all_reduce(values, group=channel.group)
        sent_bytes = values.numel() * values.element_size()
        channel.meter.count_sent(values.numel(), values.numel(), sent_bytes, sent_bytes)
