"""A process group with one thread that runs exchanges in the order they were asked for.

Collectives match only if every rank issues them in the same order. They are therefore never
issued from a callback, whose order depends on the network, but by one thread, first in first out.
"""

from __future__ import annotations

import queue
import threading
import weakref
from collections.abc import Callable
from dataclasses import dataclass
from typing import final

import torch
import torch.distributed as dist

from slimgrad.comm.traffic import TrafficMeter
from slimgrad.core.errors import ExchangeError

STOP_SECONDS = 5.0
# The same collective under the name each version of torch prefers.
_all_gather = getattr(dist, "all_gather_single", dist.all_gather_into_tensor)


@dataclass(frozen=True)
class _Job:
    run: Callable[[], torch.Tensor]
    label: str
    future: torch.futures.Future[object]


@dataclass(frozen=True)
class _Failure:
    text: str


def _result_or_raise(done: torch.futures.Future[object]) -> torch.Tensor:
    # An exception set on a Python future does not reach C++ waiters such as DDP; one raised by a
    # callback does.
    value = done.value()
    if isinstance(value, _Failure):
        raise ExchangeError(value.text)
    assert isinstance(value, torch.Tensor)
    return value


class _Worker:
    """State of the thread; it must not refer to the channel, so that this can be collected."""

    def __init__(self, rank: int) -> None:
        self.rank = rank
        self.jobs: queue.SimpleQueue[_Job | None] = queue.SimpleQueue()
        self.failure = ""
        self.lock = threading.Lock()
        self.closed = False

    def put(self, job: _Job) -> bool:
        """Queue a job; False when nobody would run it any more."""
        with self.lock:
            if not self.closed:
                self.jobs.put(job)
            return not self.closed

    def stop(self) -> None:
        with self.lock:
            self.closed = True
            self.jobs.put(None)

    def run(self) -> None:
        while (job := self.jobs.get()) is not None:
            job.future.set_result(self._outcome(job))
            del job

    def _outcome(self, job: _Job) -> torch.Tensor | _Failure:
        if self.failure:
            return _Failure(
                f"rank {self.rank}: {job.label} was not exchanged after an earlier failure: "
                f"{self.failure}"
            )
        try:
            with torch.no_grad():
                return job.run()
        except Exception as error:
            self.failure = f"rank {self.rank}: {job.label}: {type(error).__name__}: {error}"
            return _Failure(self.failure)


def _stop(worker: _Worker, thread: threading.Thread) -> None:
    worker.stop()
    if thread is not threading.current_thread():
        thread.join(STOP_SECONDS)


@final
class Channel:
    """One process group, its communication thread, and its traffic counters.

    Args:
        group: process group used by nobody else, so that its collectives never interleave with
            those of others.

    Attributes:
        rank: of this process in the group.
        world_size: number of ranks.
        meter: traffic counters.
    """

    def __init__(self, group: dist.ProcessGroup) -> None:
        self.group = group
        self.rank = dist.get_rank(group)
        self.world_size = dist.get_world_size(group)
        self.meter = TrafficMeter(self.world_size)
        self._worker = _Worker(self.rank)
        thread = threading.Thread(
            target=self._worker.run, name="slimgrad-communication", daemon=True
        )
        # Runs at the latest when the interpreter exits.
        self._finalizer = weakref.finalize(self, _stop, self._worker, thread)
        thread.start()

    def submit(
        self, run: Callable[[], torch.Tensor], label: str
    ) -> torch.futures.Future[torch.Tensor]:
        """Queue work for the communication thread.

        A failure becomes the error of the future, with this rank and ``label`` in its text;
        everything queued after it fails at once, because the ranks no longer agree on what
        comes next.

        Args:
            run: the work; returns the tensor the future yields.
            label: what it is, for messages.
        """
        future: torch.futures.Future[object] = torch.futures.Future()
        outcome = future.then(_result_or_raise)
        if not self._worker.put(_Job(run, label, future)):
            future.set_result(
                _Failure(
                    f"rank {self.rank}: {label}: compression was closed; "
                    "wrap the model in a new DistributedDataParallel to train on"
                )
            )
        return outcome

    def gather_bytes(
        self, message: torch.Tensor, *, same_length: bool, limit_bytes: int
    ) -> list[torch.Tensor]:
        """The messages of all ranks, in rank order.

        Args:
            message: flat uint8 of this rank.
            same_length: whether the messages of all ranks have the length of this one.
            limit_bytes: longest message accepted from a peer.

        Raises:
            ExchangeError: a rank announces a longer message.
        """
        lengths = [message.numel()] * self.world_size
        if not same_length:
            gathered = torch.empty(self.world_size, dtype=torch.int64)
            own = torch.tensor([message.numel()], dtype=torch.int64)
            _all_gather(gathered, own, group=self.group)
            lengths = gathered.tolist()
            for rank, length in enumerate(lengths):
                if not 0 <= length <= limit_bytes:
                    raise ExchangeError(
                        f"rank {rank} announces a message of {length} bytes, "
                        f"at most {limit_bytes} are expected"
                    )
        longest = max(lengths)
        if longest == 0:
            return [message] * self.world_size
        if message.numel() < longest:
            padded = torch.zeros(longest, dtype=torch.uint8)
            padded[: message.numel()] = message
            message = padded
        received = torch.empty(self.world_size * longest, dtype=torch.uint8)
        _all_gather(received, message, group=self.group)
        return [
            received[rank * longest : rank * longest + length]
            for rank, length in enumerate(lengths)
        ]

    def close(self) -> None:
        """Finish what is queued, within 5 seconds, and stop the thread; harmless when repeated."""
        self._finalizer()
