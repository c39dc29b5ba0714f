"""What feedback remembers: vectors by parameter name, of one rank."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, final

import numpy as np
import torch

from slimgrad.comm.compressor import Compressor
from slimgrad.comm.feedback import Feedback
from slimgrad.comm.serial import all_finite, copy_
from slimgrad.comm.sparsifiers.base import Sparsifier
from slimgrad.core.errors import CheckpointError

_MERGED = -1
_LEFT = "left"


@final
class FeedbackMemory:
    """Compresses with feedback, and remembers per parameter what that takes.

    Nothing is kept by bucket, so that another bucketing changes nothing. A gradient that is not
    finite is sent as it is and leaves the memory untouched, as does a frame that is not finite.

    Args:
        feedback: the rule.
        rank: of this process.
        world_size: number of ranks.
    """

    def __init__(self, feedback: Feedback, rank: int, world_size: int) -> None:
        self.feedback = feedback
        self._rank, self._world_size = rank, world_size
        self._vectors: dict[str, dict[str, np.ndarray]] = {}
        self._arrays: dict[str, np.ndarray] = {}

    def compress(
        self,
        gradient: torch.Tensor,
        compressor: Compressor,
        *,
        key: str,
        step: int,
        rank: int,
        seed: int,
    ) -> tuple[torch.Tensor, torch.Tensor]:
        """The frame of ``gradient`` of parameter ``key``, and the vector that it compresses.

        The vector holds until the next call.

        Stays on the calling thread, except for what ``compressor`` says of its method.
        """
        vector = gradient.detach().reshape(-1)
        if vector.dtype != torch.float32:
            vector = copy_(torch.empty(vector.numel(), dtype=torch.float32), vector)
        compressor = self._at_step(compressor, step)
        remembered = self._memory_of(key, vector.numel())
        memory = self._work(vector.numel())
        finite = all_finite(vector)
        if finite:
            with np.errstate(over="ignore"):
                self.feedback.before(vector.numpy(), remembered, self._world_size, memory)
            vector = torch.from_numpy(memory[self.feedback.parts[-1]])
        frame = compressor.compress(
            vector.view(gradient.shape), key=key, step=step, rank=rank, seed=seed, serial=True
        )
        if finite:
            # What is not finite before is not finite after what was sent has left, either.
            left = memory[_LEFT]
            np.copyto(left, vector.numpy())
            target = torch.from_numpy(left)
            compressor.decompress_add_(frame, target, alpha=-1.0, serial=True)
            if all_finite(target):
                self.feedback.after(memory, left)
                memory[self.feedback.parts[-1]] = left
                for part in self.feedback.parts:
                    np.copyto(remembered[part], memory[part])
                self._vectors[key] = remembered
        return frame, vector

    def state_dict(self) -> dict[str, Any]:
        """The vectors of this rank as plain tensors, "part/parameter", with rank and world size.

        Every rank has a memory of its own, and saves it. Loaded by the same rank of as many ranks
        it continues bit for bit; for another number of ranks see ``merged_memory``.
        """
        state: dict[str, Any] = {"rank": self._rank, "world_size": self._world_size}
        for name, memory in self._vectors.items():
            for part, vector in memory.items():
                state[f"{part}/{name}"] = torch.from_numpy(vector.copy())
        return state

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """Continue from what ``state_dict`` of this rank, or ``merged_memory``, returned.

        Raises:
            CheckpointError: the memory of another rank or world size, or of another feedback.
        """
        whose = (state.get("rank"), state.get("world_size"))
        if whose != (self._rank, self._world_size) and whose[0] != _MERGED:
            raise CheckpointError(
                f"the feedback memory is that of rank {whose[0]} of {whose[1]}, this is rank "
                f"{self._rank} of {self._world_size}; load every rank's own, or what "
                "slimgrad.comm.feedback_memory.merged_memory makes of all of them"
            )
        vectors: dict[str, dict[str, np.ndarray]] = {}
        for label, vector in state.items():
            part, _, name = label.partition("/")
            if not name:
                continue
            if part not in self.feedback.parts or not isinstance(vector, torch.Tensor):
                raise CheckpointError(f"{label!r} is no memory of {self.feedback!r}")
            vectors.setdefault(name, {})[part] = vector.reshape(-1).float().numpy().copy()
        for name, memory in vectors.items():
            if set(memory) != set(self.feedback.parts):
                raise CheckpointError(
                    f"{name!r} has only {sorted(memory)} of {list(self.feedback.parts)}"
                )
        self._vectors = vectors

    def _at_step(self, compressor: Compressor, step: int) -> Compressor:
        method = compressor.method
        if not isinstance(method, Sparsifier) or method.strength != "keep":
            return compressor
        keep = getattr(method, "keep")  # noqa: B009  (not every sparsifier has it)
        share = self.feedback.share_at(step, keep)
        return compressor if share == keep else compressor.with_strength(share)

    def _work(self, n: int) -> dict[str, np.ndarray]:
        """Arrays of n components that serve every parameter in turn."""
        for part in (*self.feedback.parts, _LEFT):
            if part not in self._arrays or len(self._arrays[part]) < n:
                self._arrays[part] = np.empty(n, dtype=np.float32)
        return {part: array[:n] for part, array in self._arrays.items()}

    def _memory_of(self, name: str, n: int) -> dict[str, np.ndarray]:
        memory = self._vectors.get(name)
        if memory is None:
            return {part: np.zeros(n, dtype=np.float32) for part in self.feedback.parts}
        length = len(next(iter(memory.values())))
        if length != n:
            raise CheckpointError(
                f"the feedback memory of {name!r} has {length} components, its gradient {n}"
            )
        return memory


def merged_memory(states: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    """One memory for any number of ranks, from the ``state_dict`` of every rank.

    Each vector is the mean over the ranks, zero where a rank has none, so that the part of the mean
    gradient that is still to be sent stays the same whatever the number of ranks that load it.

    Args:
        states: of all ranks, in any order.

    Raises:
        CheckpointError: not exactly one state of every rank.

    >>> states = [
    ...     {"rank": r, "world_size": 2, "error/w": torch.tensor([2.0 * r])} for r in range(2)
    ... ]
    >>> merged_memory(states)
    {'rank': -1, 'world_size': 2, 'error/w': tensor([1.])}
    """
    world_size = len(states)
    found = sorted((state.get("rank", _MERGED), state.get("world_size")) for state in states)
    if not states or found != [(rank, world_size) for rank in range(world_size)]:
        raise CheckpointError(
            f"a merged memory takes the state of every rank once, got (rank, world size) {found}"
        )
    merged: dict[str, Any] = {"rank": _MERGED, "world_size": world_size}
    labels = {label: None for state in states for label in state if "/" in label}
    ordered = sorted(states, key=lambda state: state["rank"])
    for label in labels:
        vectors = [state[label].double() for state in ordered if label in state]
        merged[label] = (torch.stack(vectors).sum(0) / world_size).float()
    return merged
