"""What ``compress`` returns: the running compression of one DDP module."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, final

import torch
import torch.distributed as dist

from slimgrad.comm.compressor import Compressor
from slimgrad.comm.exchange import Channel, Exchange, GradientBucket, Span
from slimgrad.comm.policy import Policy
from slimgrad.comm.quantizers.adaptive import AdaptiveQuantizer
from slimgrad.comm.serial import multiply_
from slimgrad.comm.traffic import TrafficMeter, TrafficReport
from slimgrad.core.errors import CheckpointError, ConfigError
from slimgrad.core.rng import stream_key

GradBucket = dist.GradBucket  # pyright: ignore[reportPrivateImportUsage]
_STATE_VERSION = 1


@final
class CompressionHandle:
    """Counters, state and end of the compression of one DDP module.

    Attributes:
        step: synchronised backward passes so far; with the seed it names the random streams.
        seed: experiment seed.
    """

    def __init__(
        self,
        names: Mapping[int, str],
        compressor: Compressor,
        exchange: Exchange,
        policy: Policy,
        channel: Channel | None,
        seed: int,
    ) -> None:
        self.step = 0
        self.seed = seed
        self._names = dict(names)
        self._compressor = compressor
        self._exchange = exchange
        self._policy = policy
        self._channel = channel
        self._meter = channel.meter if channel is not None else TrafficMeter(world_size=1)

    def __repr__(self) -> str:
        return (
            f"CompressionHandle({self._compressor!r}, exchange={self._exchange.name!r}, "
            f"{self._policy!r}, world_size={self._meter.world_size}, step={self.step})"
        )

    @property
    def _adaptive(self) -> AdaptiveQuantizer | None:
        quantizer = self._compressor.quantizer
        return quantizer if isinstance(quantizer, AdaptiveQuantizer) else None

    def report(self) -> TrafficReport:
        """What this rank sent so far, and how long it took."""
        return self._meter.report()

    def measure_error(self, on: bool = True) -> None:
        """Measure the relative error of what this rank sends, at the price of decoding it."""
        self._meter.measures_error = on

    def state_dict(self) -> dict[str, Any]:
        """Everything a resumed run needs to continue the same random streams.

        Plain integers, and for adaptive quantizers "levels": a tensor for each parameter name.
        Keyed by nothing that depends on buckets or on the number of ranks; loads with
        ``torch.load(..., weights_only=True)``. Rank r of a resumed run continues the streams of
        rank r, whatever the number of ranks; levels are the same on all ranks.
        """
        state: dict[str, Any] = {"version": _STATE_VERSION, "step": self.step, "seed": self.seed}
        if self._adaptive is not None:
            state["levels"] = self._adaptive.state_dict()
        return state

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """Continue where ``state_dict`` was taken.

        Raises:
            CheckpointError: the state is of another version or not a state of this class.
        """
        expected = {"version", "step", "seed"}
        integers = {name: value for name, value in state.items() if name != "levels"}
        if set(integers) != expected or not all(isinstance(v, int) for v in integers.values()):
            raise CheckpointError(
                f"compression state must hold the integers {sorted(expected)}, got {integers!r}"
            )
        if ("levels" in state) != (self._adaptive is not None):
            raise CheckpointError(
                "compression state with levels belongs to a quantizer that adapts, "
                f"this is {self._compressor!r}"
            )
        if state["version"] != _STATE_VERSION:
            raise CheckpointError(
                f"compression state has version {state['version']}, this is {_STATE_VERSION}"
            )
        try:
            stream_key(state["seed"], state["step"], "")
        except ConfigError as error:
            raise CheckpointError(f"compression state cannot be continued: {error}") from error
        if self._adaptive is not None:
            self._adaptive.load_state_dict(state["levels"])
        self.step, self.seed = state["step"], state["seed"]

    def close(self) -> None:
        """Finish what is queued and stop the communication thread; harmless when repeated.

        Waits 5 seconds at most for a thread that waits for other ranks. The process group stays
        until ``torch.distributed.destroy_process_group()``: closing its connections could cut off
        ranks that still receive.

        DDP cannot forget a hook: a later backward pass of the module raises. Happens by itself
        when the interpreter exits.
        """
        if self._channel is not None:
            self._channel.close()

    def average(self, bucket: GradBucket) -> torch.futures.Future[torch.Tensor]:
        """Queue the averaging of a DDP bucket; what the communication hook does."""
        assert self._channel is not None
        label, step = f"bucket {bucket.index()}", self.step
        if bucket.is_last():
            self.step += 1
            self._meter.count_step()
        buffer = bucket.buffer()
        if buffer.is_sparse:
            channel = self._channel
            return channel.submit(lambda: _sparse_mean(buffer, channel), f"{label} of step {step}")
        spans = tuple(self._spans(bucket, buffer))
        return self._exchange.mean(
            GradientBucket(buffer, spans, label),
            self._compressor,
            self._channel,
            step=step,
            seed=self.seed,
        )

    def _spans(self, bucket: GradBucket, buffer: torch.Tensor) -> list[Span]:
        # Buckets are rebuilt after the first step, so nothing about them is remembered.
        spans = []
        for parameter, gradient in zip(bucket.parameters(), bucket.gradients(), strict=True):
            start = int(gradient.storage_offset() - buffer.storage_offset())
            name = self._names[id(parameter)]
            exact = self._policy.is_exact(name, tuple(parameter.shape))
            spans.append(Span(name, start, start + gradient.numel(), exact))
        return spans


def _sparse_mean(gradient: torch.Tensor, channel: Channel) -> torch.Tensor:
    """Exact mean of a sparse gradient, as DDP computes it."""
    values = gradient._values()
    multiply_(values.view(-1), 1.0 / channel.world_size)
    with channel.meter.wire():
        dist.all_reduce(gradient, group=channel.group)
    sent_bytes = values.numel() * values.element_size()
    sent_bytes += gradient._indices().numel() * gradient._indices().element_size()
    channel.meter.count_sent(values.numel(), values.numel(), sent_bytes)
    return gradient
