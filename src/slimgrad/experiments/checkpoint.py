"""Checkpoints: everything a run needs to go on as if it had never stopped, in one file."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from safetensors import SafetensorError

from slimgrad.core.errors import CheckpointError
from slimgrad.experiments.files import read_tensors, tensor_bytes, write_tensors
from slimgrad.experiments.tree import flatten, unflatten

_FORMAT = "slimgrad-checkpoint-1"


@dataclass(frozen=True)
class Checkpoint:
    """A run's state.

    Attributes:
        fingerprint: of the configuration and the data it belongs to.
        step: optimizer steps taken.
        state: nested dicts, lists and tuples of tensors, numbers and texts.
    """

    fingerprint: str
    step: int
    state: dict[str, Any]


def save(path: Path, checkpoint: Checkpoint) -> None:
    """Write a checkpoint; the one already at ``path`` stays whole until the new one is."""
    tensors, rest = flatten(checkpoint.state)
    # Copies: the file holds contiguous tensors that share no memory.
    copies = {
        name: tensor.clone(memory_format=torch.contiguous_format)
        for name, tensor in tensors.items()
    }
    metadata = {
        "format": _FORMAT,
        "fingerprint": checkpoint.fingerprint,
        "step": str(checkpoint.step),
        "state": rest,
        "checksum": _checksum(copies, rest),
    }
    write_tensors(path, copies, metadata)


def load(path: Path, fingerprint: str | None = None) -> Checkpoint:
    """Read a checkpoint and check that it is whole and belongs to this run.

    Args:
        path: file written by ``save``.
        fingerprint: of the run that is to continue; None takes any.

    Raises:
        CheckpointError: the file is missing, damaged, or of another configuration.
    """
    try:
        tensors, facts = read_tensors(path)
    except (SafetensorError, OSError, ValueError) as error:
        raise CheckpointError(f"cannot read the checkpoint {path}: {error}") from None
    if facts.get("format") != _FORMAT:
        raise CheckpointError(f"the file {path} is no checkpoint of slimgrad")
    if _checksum(tensors, facts["state"]) != facts["checksum"]:
        raise CheckpointError(f"the checkpoint {path} is damaged: its checksum does not match")
    if fingerprint is not None and facts["fingerprint"] != fingerprint:
        raise CheckpointError(
            f"the checkpoint {path} belongs to another configuration or other data: "
            "resume with the settings it was made with, or choose another output folder"
        )
    return Checkpoint(facts["fingerprint"], int(facts["step"]), unflatten(tensors, facts["state"]))


def _checksum(tensors: dict[str, torch.Tensor], rest: str) -> str:
    digest = hashlib.sha256(rest.encode())
    for name in sorted(tensors):
        digest.update(name.encode())
        digest.update(tensor_bytes(tensors[name]))
    return digest.hexdigest()
