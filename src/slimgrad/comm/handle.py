"""What ``compress`` returns: the running compression of one DDP module."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, final

import torch
import torch.distributed as dist

from slimgrad.comm.compressor import Compressor
from slimgrad.comm.exchange import Channel, Exchange, GradientBucket, Span
from slimgrad.comm.feedback import Feedback
from slimgrad.comm.feedback_memory import FeedbackMemory
from slimgrad.comm.policy import Policy
from slimgrad.comm.quantizers.adaptive import AdaptiveQuantizer
from slimgrad.comm.serial import multiply_
from slimgrad.comm.traffic import TrafficMeter, TrafficReport
from slimgrad.core.errors import CheckpointError, ConfigError
from slimgrad.core.rng import stream_key

GradBucket = dist.GradBucket  # pyright: ignore[reportPrivateImportUsage]
_STATE_VERSION = 1
_MEMORIES = ("feedback", "starts", "levels")


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
        feedback: Feedback | None = None,
    ) -> None:
        self.step = 0
        self.seed = seed
        self._names = dict(names)
        self._compressor = compressor
        self._exchange = exchange
        self._policy = policy.with_own_state()
        self._channel = channel
        self._meter = channel.meter if channel is not None else TrafficMeter(world_size=1)
        self._memory: FeedbackMemory | None = None
        if feedback is not None:
            rank = channel.rank if channel is not None else 0
            self._memory = FeedbackMemory(feedback, rank, self._meter.world_size)

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
        """Everything a resumed run needs to continue the same random streams, and the memories.

        Plain integers and tensors, keyed by nothing that depends on buckets; loads with
        ``torch.load(..., weights_only=True)``. Rank r of a resumed run continues the streams of
        rank r, whatever the number of ranks. "feedback" is there with feedback: it belongs to this
        rank, see ``FeedbackMemory.state_dict``. "levels" is there with an adaptive quantizer: a
        tensor for each parameter name, the same on all ranks. "starts" is there once a low-rank
        method has run: what it begins with, by parameter name; another rank's serves as well.
        """
        state: dict[str, Any] = {"version": _STATE_VERSION, "step": self.step, "seed": self.seed}
        if self._memory is not None:
            state["feedback"] = self._memory.state_dict()
        starts: dict[str, torch.Tensor] = {}
        for each in self._compressors():
            starts.update({name: start.clone() for name, start in each.starts.items()})
        if starts:
            state["starts"] = starts
        if self._adaptive is not None:
            state["levels"] = self._adaptive.state_dict()
        return state

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """Continue where ``state_dict`` was taken.

        Raises:
            CheckpointError: the state is of another version, not a state of this class, or without
                the memory that feedback needs.
        """
        numbers = {name: value for name, value in state.items() if name not in _MEMORIES}
        expected = {"version", "step", "seed"}
        if set(numbers) != expected or not all(isinstance(v, int) for v in numbers.values()):
            raise CheckpointError(
                f"compression state must hold the integers {sorted(expected)}, got {numbers!r}"
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
        if ("feedback" in state) != (self._memory is not None):
            raise CheckpointError(
                "the state was taken "
                + ("with" if "feedback" in state else "without")
                + " feedback; resume with the same feedback"
            )
        starts = state.get("starts", {})
        if not all(
            isinstance(start, torch.Tensor) and start.dim() == 2 for start in starts.values()
        ):
            raise CheckpointError('"starts" must hold matrices by parameter name')
        if self._memory is not None:
            self._memory.load_state_dict(state["feedback"])
        for each in self._compressors():
            each.starts.clear()
            each.starts.update({n: start.clone() for n, start in starts.items()})
        if self._adaptive is not None:
            self._adaptive.load_state_dict(state["levels"])
        self.step, self.seed = state["step"], state["seed"]

    def _compressors(self) -> list[Compressor]:
        layers = [compressor for _, compressor in self._policy.layers if compressor is not None]
        return [self._compressor, *layers]

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
        spans = tuple(self._spans(bucket, buffer, step))
        return self._exchange.mean(
            GradientBucket(buffer, spans, label, self._memory),
            self._compressor,
            self._channel,
            step=step,
            seed=self.seed,
        )

    def _spans(self, bucket: GradBucket, buffer: torch.Tensor, step: int) -> list[Span]:
        # Buckets are rebuilt after the first step, so nothing about them is remembered.
        spans = []
        for parameter, gradient in zip(bucket.parameters(), bucket.gradients(), strict=True):
            start = int(gradient.storage_offset() - buffer.storage_offset())
            name = self._names[id(parameter)]
            shape = tuple(parameter.shape)
            chosen = self._policy.compressor_for(name, shape, step, self._compressor)
            stop = start + gradient.numel()
            spans.append(Span(name, start, stop, chosen is None, shape, chosen))
        return spans


def _sparse_mean(gradient: torch.Tensor, channel: Channel) -> torch.Tensor:
    """Exact mean of a sparse gradient, as DDP computes it."""
    values = gradient._values()
    multiply_(values.view(-1), 1.0 / channel.world_size)
    with channel.meter.wire():
        dist.all_reduce(gradient, group=channel.group)
    sent_bytes = values.numel() * values.element_size()
    sent_bytes += gradient._indices().numel() * gradient._indices().element_size()
    channel.meter.count_sent(values.numel(), values.numel(), sent_bytes, sent_bytes)
    return gradient
