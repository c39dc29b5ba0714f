"""What the workers of one launch are told: the runs, the data, where to write."""

from __future__ import annotations

from pathlib import Path
from typing import Literal

from pydantic import BaseModel

from slimgrad.experiments.config import TrainConfig
from slimgrad.experiments.files import slug, write_text


class RunPlan(BaseModel):
    """One run.

    Attributes:
        config: its settings.
        checkpoint: file for its state.
        start_step: steps already taken, in that file; 0 starts anew.
        keep_final: whether the state at the end is written, periodic checkpoints or not.
    """

    config: TrainConfig
    checkpoint: Path
    start_step: int
    keep_final: bool


class Plan(BaseModel):
    """All runs of one launch, executed in order by the same workers.

    Attributes:
        command: "train" or "compare".
        dataset: cache file of the decoded images.
        dataset_provenance: where the images come from.
        dataset_checksum: digest of all images and labels.
        threads: threads a worker.
        records: file the records are appended to.
        runs: the runs that are still to be done.
    """

    command: Literal["train", "compare"]
    dataset: Path
    dataset_provenance: str
    dataset_checksum: str
    threads: int
    records: Path
    runs: list[RunPlan]

    def write(self, path: Path) -> None:
        """Write the plan for workers to read."""
        write_text(path, self.model_dump_json(indent=1))

    @classmethod
    def read(cls, path: Path) -> Plan:
        """The plan that ``write`` wrote."""
        return cls.model_validate_json(path.read_text(encoding="utf-8"))


def checkpoint_path(config: TrainConfig) -> Path:
    """Where the state of a run is kept.

    >>> checkpoint_path(TrainConfig(out=Path("runs/a"), seed=2)).as_posix()
    'runs/a/checkpoints/exact-seed2.safetensors'
    """
    name = f"{slug(config.method.name)}-seed{config.seed}.safetensors"
    return config.out / "checkpoints" / name
