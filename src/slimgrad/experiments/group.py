"""The workers of a launch as seen from one of them."""

from __future__ import annotations

import gc
import os
import traceback
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import timedelta
from typing import Any

import torch
import torch.distributed as dist
from safetensors.torch import load, save

from slimgrad.core.errors import WorkerError
from slimgrad.experiments.tree import flatten, unflatten

# A peer that died is noticed at once, by its closed connection; this is for one that hangs.
EXCHANGE_TIMEOUT = timedelta(minutes=10)


@contextmanager
def process_group(**settings: Any) -> Iterator[None]:
    """The default gloo group inside the ``with`` block.

    What used the group is gone before the group is. The reducer of DistributedDataParallel, left
    as its last owner, would end the group's threads while it holds Python's lock; a thread that
    waits for that lock to drop a finished exchange then never ends, nor does the process.

    Args:
        settings: keywords of ``torch.distributed.init_process_group``.
    """
    dist.init_process_group("gloo", timeout=EXCHANGE_TIMEOUT, **settings)
    try:
        yield
    except BaseException as error:
        _forget_locals(error)
        raise
    finally:
        gc.collect()  # DistributedDataParallel is part of a reference cycle
        dist.destroy_process_group()


def _forget_locals(error: BaseException) -> None:
    """Drop what the frames that ``error`` and its causes passed through still hold."""
    found: BaseException | None = error
    while found is not None:
        traceback.clear_frames(found.__traceback__)
        found = found.__cause__ or found.__context__


@dataclass(frozen=True)
class Group:
    """This worker's place among the workers; the default process group is initialised.

    Attributes:
        rank: this worker.
        world_size: number of workers.
        parent_pid: launcher that started this process; None when it was not started by one.
    """

    rank: int
    world_size: int
    parent_pid: int | None = None

    def check_parent(self) -> None:
        """Stop when the process that started this one has died.

        A launcher that is killed outright cannot stop its workers; without this they would go on
        writing into a folder that the next launch resumes from.
        """
        if self.parent_pid is not None and os.getppid() != self.parent_pid:
            raise WorkerError(f"rank {self.rank}: the launcher died; stopping")

    def gather(self, tensor: torch.Tensor) -> list[torch.Tensor]:
        """The tensors of all ranks, of one shape and type, in the order of the ranks."""
        parts = [torch.empty_like(tensor) for _ in range(self.world_size)]
        dist.all_gather(parts, tensor.contiguous())
        return parts

    def gather_states(self, state: Any) -> list[Any]:
        """The nested states of all ranks, in the order of the ranks, on every rank."""
        if self.world_size == 1:
            return [state]
        tensors, rest = flatten(state)
        contiguous = {name: tensor.contiguous().clone() for name, tensor in tensors.items()}
        text = torch.frombuffer(bytearray(rest.encode()), dtype=torch.uint8)
        data = save({**contiguous, "//rest": text})
        sizes = self.gather(torch.tensor([len(data)]))
        longest = int(max(sizes))
        padded = torch.zeros(longest, dtype=torch.uint8)
        padded[: len(data)] = torch.frombuffer(bytearray(data), dtype=torch.uint8)
        states = []
        for part, size in zip(self.gather(padded), sizes, strict=True):
            named = load(part[: int(size)].numpy().tobytes())
            text = named.pop("//rest")
            states.append(unflatten(named, text.numpy().tobytes().decode()))
        return states


def require_equal(digests: list[bytes], what: str) -> None:
    """WorkerError unless all ranks hold the same ``what``, naming the first that differs."""
    for rank, digest in enumerate(digests):
        if digest != digests[0]:
            raise WorkerError(
                f"rank {rank} holds other {what} than rank 0: the exchange of gradients is broken"
            )
