"""What an exchange is: the mean of a bucket of gradients over ranks."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import ClassVar

import torch

from slimgrad.comm.compressor import Compressor
from slimgrad.comm.exchange.channel import Channel
from slimgrad.comm.feedback_memory import FeedbackMemory


@dataclass(frozen=True)
class Span:
    """Where the gradient of one parameter lies in a bucket.

    Attributes:
        name: parameter name, the same on all ranks.
        start, stop: range of components.
        exact: whether it is sent without compression.
        shape: of the parameter.
        compressor: what sends it, None for the one of the exchange.
    """

    name: str
    start: int
    stop: int
    exact: bool
    shape: tuple[int, ...]
    compressor: Compressor | None = None


@dataclass(frozen=True)
class GradientBucket:
    """Gradients that are exchanged together.

    Attributes:
        values: flat and contiguous, one floating dtype; overwritten by the mean.
        spans: the tensors in it, in the same order on all ranks; they do not overlap.
        label: what to call it in messages.
        feedback: what adds to compressed tensors what earlier frames left out, if anything.
    """

    values: torch.Tensor
    spans: tuple[Span, ...]
    label: str
    feedback: FeedbackMemory | None = None


class Exchange(ABC):
    """Averages buckets over the ranks of a channel.

    Guarantee: every rank ends with the same bits. The sum is taken over decoded values in rank
    order, then divided by the number of ranks.

    Attributes:
        name: registry name, equal to the file name.
        compresses: whether quantized frames can travel by it.
    """

    name: ClassVar[str]
    compresses: ClassVar[bool]

    def mean(
        self,
        bucket: GradientBucket,
        compressor: Compressor,
        channel: Channel,
        *,
        step: int,
        seed: int,
    ) -> torch.futures.Future[torch.Tensor]:
        """Queue the averaging of ``bucket``; the future yields ``bucket.values``.

        Args:
            bucket: overwritten when the future is done.
            compressor: how tensors that are not exact become bytes.
            channel: the ranks; every rank queues the same buckets in the same order.
            step: synchronised backward pass, with ``seed`` part of the random streams.
            seed: experiment seed.
        """

        def run() -> torch.Tensor:
            self.average(bucket, compressor, channel, step=step, seed=seed)
            return bucket.values

        return channel.submit(run, f"{bucket.label} of step {step}")

    @abstractmethod
    def average(
        self,
        bucket: GradientBucket,
        compressor: Compressor,
        channel: Channel,
        *,
        step: int,
        seed: int,
    ) -> None:
        """Replace the bucket's values by their mean; runs on the communication thread."""
