"""Compressed exchange by all-gather: every rank receives and sums the frames of all."""

from __future__ import annotations

from typing import ClassVar, final

import torch

from slimgrad.comm import frame as wire
from slimgrad.comm.compressor import Compressor
from slimgrad.comm.exchange.base import Exchange, GradientBucket, Span
from slimgrad.comm.exchange.channel import Channel
from slimgrad.comm.exchange.level_agreement import refresh_levels
from slimgrad.comm.feedback_memory import FeedbackMemory
from slimgrad.comm.majority import majority_vote
from slimgrad.comm.serial import copy_, divide_, pieces, zero_
from slimgrad.core.errors import ConfigError, ExchangeError, FrameError
from slimgrad.core.registry import unknown_name_message

AGGREGATES = ("mean", "majority")
# No codec needs more for a component and its share of tables; a peer that announces more is wrong.
_LIMIT_BYTES_PER_COMPONENT = 16
_LIMIT_BYTES_PER_FRAME = 65536
_EXACT = Compressor(None)


@final
class AllGather(Exchange):
    """One message a rank: a frame for each compressed tensor, one for all exact ones together.

    mean = (sum over ranks, in rank order, of decoded values) / world_size, in float32, or in
    float64 for float64 buckets. Traffic grows with the number of ranks; right for few ranks.

    Guarantee: unbiased if the method is and there is no feedback; for W ranks the variance of the
    mean is the mean of the ranks' variances over W. Non-finite values reach all ranks.

    Args:
        aggregate: "mean", or "majority" for ``majority_vote`` of the compressed tensors; exact
            tensors are averaged in either case.

    Raises:
        ConfigError: another aggregate.
    """

    name: ClassVar[str] = "all_gather"
    compresses: ClassVar[bool] = True

    def __init__(self, aggregate: str = "mean") -> None:
        if aggregate not in AGGREGATES:
            raise ConfigError(unknown_name_message("aggregate", aggregate, AGGREGATES))
        self.aggregate = aggregate

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
        if not bucket.spans:
            return
        parts = _parts(bucket, compressor)
        named = ((part.key, part.gathered()) for part in parts if not part.exact)
        refresh_levels(compressor.method, named, channel, step)
        frames: list[torch.Tensor] = []
        for part in parts:
            with channel.meter.codec():
                frame = part.encode(bucket.feedback, step=step, seed=seed, rank=channel.rank)
            frames.append(frame)
            if channel.meter.measures_error and not part.exact:
                channel.meter.count_error(*_squared_error(part, frame))
        with channel.meter.codec():
            message = frames[0] if len(frames) == 1 else torch.cat(frames)
        limit = _LIMIT_BYTES_PER_FRAME * len(parts)
        limit += _LIMIT_BYTES_PER_COMPONENT * bucket.values.numel()
        with channel.meter.wire():
            messages = channel.gather_bytes(
                message,
                same_length=all(part.compressor.fixed_length for part in parts),
                limit_bytes=limit,
            )
        with channel.meter.codec():
            _decode_mean(parts, messages, self.aggregate)
        exact = [part.compressor.method is None for part in parts]
        channel.meter.count_sent(
            sum(part.numel for part in parts),
            sum(part.numel for part, is_exact in zip(parts, exact, strict=True) if is_exact),
            message.numel(),
            sum(frame.numel() for frame, is_exact in zip(frames, exact, strict=True) if is_exact),
        )


class _Part:
    """One frame's worth of a bucket: a compressed tensor, or all the exact ones."""

    def __init__(
        self, values: torch.Tensor, spans: list[Span], compressor: Compressor, *, exact: bool
    ) -> None:
        self.exact = exact
        self.compressor = compressor
        self.name = ", ".join(span.name for span in spans)
        self.key, self._shape = spans[0].name, spans[0].shape
        self._slices = [values[span.start : span.stop] for span in spans]
        self.numel = sum(piece.numel() for piece in self._slices)

    def gathered(self) -> torch.Tensor:
        """The values, flat; the bucket's own memory where they lie together."""
        if len(self._slices) == 1:
            return self._slices[0]
        gathered = torch.empty(self.numel, dtype=self._slices[0].dtype)
        for slot, copied in self._pairs(gathered):
            copy_(copied, slot)
        return gathered

    def encode(
        self, feedback: FeedbackMemory | None, *, step: int, seed: int, rank: int
    ) -> torch.Tensor:
        """The frame; until the next part's, ``compressed`` is the vector that it stands for."""
        self.compressed = self.gathered()
        if self.exact:
            return wire.encode_raw(self.compressed)
        gradient = self.compressed.view(self._shape)
        if feedback is None or self.compressor.method is None:
            return self.compressor.compress(
                gradient, key=self.key, step=step, rank=rank, seed=seed, serial=True
            )
        frame, self.compressed = feedback.compress(
            gradient, self.compressor, key=self.key, step=step, rank=rank, seed=seed
        )
        return frame

    def accumulator(self) -> torch.Tensor:
        """Zeros to sum decoded values in; the bucket's own memory where it has the dtype."""
        dtype = self._slices[0].dtype
        if len(self._slices) == 1 and dtype in (torch.float32, torch.float64):
            total = self._slices[0]
        else:
            wide = torch.float64 if dtype == torch.float64 else torch.float32
            total = torch.empty(self.numel, dtype=wide)
        zero_(total)
        return total

    def store(self, total: torch.Tensor) -> None:
        for slot, mean in self._pairs(total):
            if slot.data_ptr() != mean.data_ptr():
                copy_(slot, mean)

    def _pairs(self, flat: torch.Tensor) -> list[tuple[torch.Tensor, torch.Tensor]]:
        return list(zip(self._slices, flat.split([s.numel() for s in self._slices]), strict=True))


def _parts(bucket: GradientBucket, compressor: Compressor) -> list[_Part]:
    parts = [
        _Part(bucket.values, [span], span.compressor or compressor, exact=False)
        for span in bucket.spans
        if not span.exact
    ]
    exact = [span for span in bucket.spans if span.exact]
    if exact:
        parts.append(_Part(bucket.values, exact, _EXACT, exact=True))
    return parts


def _decode_mean(parts: list[_Part], messages: list[torch.Tensor], aggregate: str) -> None:
    split = [_split(message, len(parts), rank) for rank, message in enumerate(messages)]
    for index, part in enumerate(parts):
        frames = [rank_frames[index] for rank_frames in split]
        if aggregate == "majority" and not part.exact:
            part.store(_voted(part, frames))
        else:
            part.store(_mean(part, frames))


def _mean(part: _Part, frames: list[torch.Tensor]) -> torch.Tensor:
    total = part.accumulator()
    try:
        part.compressor.decompress_sum_(frames, total, serial=True)
    except FrameError:
        _name_the_rank(part, frames, total)
        raise
    divide_(total, len(frames))
    return total


def _name_the_rank(part: _Part, frames: list[torch.Tensor], total: torch.Tensor) -> None:
    for rank, frame in enumerate(frames):
        try:
            part.compressor.decompress_add_(frame, total, serial=True)
        except FrameError as error:
            raise ExchangeError(f"frame of {part.name} from rank {rank}: {error}") from error


def _voted(part: _Part, frames: list[torch.Tensor]) -> torch.Tensor:
    try:
        return majority_vote(frames, serial=True)
    except FrameError as error:
        raise ExchangeError(f"frame of {part.name}: {error}") from error


def _split(message: torch.Tensor, count: int, rank: int) -> list[torch.Tensor]:
    try:
        return wire.split(message, count)
    except FrameError as error:
        raise ExchangeError(f"message from rank {rank}: {error}") from error


def _squared_error(part: _Part, frame: torch.Tensor) -> tuple[float, float]:
    error = signal = 0.0
    decoded = part.compressor.decompress(frame, limit=part.numel, serial=True)
    for sent, exact in zip(pieces(decoded), pieces(part.compressed), strict=True):
        exact = exact.double()
        error += float((sent.double() - exact).square().sum())
        signal += float(exact.square().sum())
    return error, signal
