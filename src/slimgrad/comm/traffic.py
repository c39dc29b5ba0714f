"""What was sent, and how long it took: counted always."""

from __future__ import annotations

import math
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import final


@final
@dataclass(frozen=True)
class TrafficReport:
    """Bytes and seconds of one rank since compression was switched on.

    Attributes:
        steps: synchronised backward passes.
        components: gradient components that were averaged, over all steps.
        exact_components: those of them that were sent exactly.
        sent_bytes: bytes this rank put into exchanges, headers included; counted once, whatever
            number of ranks receives them.
        codec_seconds: time spent making and reading frames, on the communication thread.
        wire_seconds: time spent inside collectives, waiting for slower ranks included.
        relative_error: sqrt(sum ||Q(v) - v||^2 / sum ||v||^2) of what this rank sent, None when
            it was not measured.
        world_size: number of ranks.
        exact_bytes: those of the sent bytes that hold exact values.
    """

    steps: int
    components: int
    exact_components: int
    sent_bytes: int
    codec_seconds: float
    wire_seconds: float
    relative_error: float | None
    world_size: int
    exact_bytes: int = 0

    @property
    def bits_per_component(self) -> float:
        """Bits sent for a component of the gradient, everything included; NaN before a step."""
        return 8 * self.sent_bytes / self.components if self.components else math.nan

    @property
    def exact_share(self) -> float:
        """Share of the components that went exact; NaN before a step."""
        return self.exact_components / self.components if self.components else math.nan

    @property
    def exact_bytes_share(self) -> float:
        """Share of the sent bytes that hold exact values; NaN before a step."""
        return self.exact_bytes / self.sent_bytes if self.sent_bytes else math.nan

    def __str__(self) -> str:
        if not self.components:
            return f"nothing was sent yet, over {self.world_size} ranks"
        saved = 32 / self.bits_per_component
        rows = [
            ("ranks", f"{self.world_size}"),
            ("steps", f"{self.steps}"),
            ("components", f"{self.components:,}"),
            ("sent exactly", f"{self.exact_share:.2%}"),
            ("sent bytes", f"{self.sent_bytes:,}"),
            ("for exact values", f"{self.exact_bytes_share:.2%}"),
            ("bits per component", f"{self.bits_per_component:.3f}"),
            ("32 bits against it", f"{saved:.2f}x"),
            ("codec seconds", f"{self.codec_seconds:.3f}"),
            ("wire seconds", f"{self.wire_seconds:.3f}"),
        ]
        if self.relative_error is not None:
            rows.append(("relative error", f"{self.relative_error:.4f}"))
        return "\n".join(f"{name:<20}{value:>16}" for name, value in rows)


@final
class TrafficMeter:
    """The counters behind a report.

    The communication hook counts steps and the communication thread counts all else, so that
    nothing is locked.

    Attributes:
        measures_error: whether exchanges also measure the relative error of what they send;
            costs one more decoding of the rank's own frames.
    """

    def __init__(self, world_size: int) -> None:
        self.world_size = world_size
        self.measures_error = False
        self._steps = self._components = self._exact = self._sent_bytes = self._exact_bytes = 0
        self._codec_seconds = self._wire_seconds = 0.0
        self._error = self._signal = 0.0

    @contextmanager
    def codec(self) -> Iterator[None]:
        """Count the time of the block as codec time."""
        start = time.perf_counter()
        try:
            yield
        finally:
            self._codec_seconds += time.perf_counter() - start

    @contextmanager
    def wire(self) -> Iterator[None]:
        """Count the time of the block as time on the wire."""
        start = time.perf_counter()
        try:
            yield
        finally:
            self._wire_seconds += time.perf_counter() - start

    def count_step(self) -> None:
        """Count one synchronised backward pass."""
        self._steps += 1

    def count_sent(
        self, components: int, exact_components: int, sent_bytes: int, exact_bytes: int = 0
    ) -> None:
        """Count one bucket."""
        self._exact_bytes += exact_bytes
        self._components += components
        self._exact += exact_components
        self._sent_bytes += sent_bytes

    def count_error(self, squared_error: float, squared_norm: float) -> None:
        """Count the squared error and the squared norm of one tensor."""
        self._error += squared_error
        self._signal += squared_norm

    def report(self) -> TrafficReport:
        """The counters now.

        >>> meter = TrafficMeter(world_size=2)
        >>> meter.count_sent(components=1000, exact_components=0, sent_bytes=500)
        >>> meter.report().bits_per_component
        4.0
        """
        return TrafficReport(
            steps=self._steps,
            components=self._components,
            exact_components=self._exact,
            sent_bytes=self._sent_bytes,
            codec_seconds=self._codec_seconds,
            wire_seconds=self._wire_seconds,
            relative_error=math.sqrt(self._error / self._signal) if self._signal else None,
            world_size=self.world_size,
            exact_bytes=self._exact_bytes,
        )
