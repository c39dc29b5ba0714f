"""The training loop: steps timed, epochs measured, checkpoints kept, records written."""

from __future__ import annotations

import math
import statistics
import time
from typing import Any

import torch

from slimgrad.experiments import checkpoint
from slimgrad.experiments.config import TrainConfig
from slimgrad.experiments.data.base import ImageDataset
from slimgrad.experiments.group import Group
from slimgrad.experiments.plan import RunPlan
from slimgrad.experiments.records import RecordWriter
from slimgrad.experiments.training import Training


class _Progress:
    """How far a run is and what it measured so far; part of its checkpoint."""

    def __init__(self) -> None:
        self.step = 0
        self.step_seconds: list[float] = []
        self.epoch_losses: list[float] = []
        self.accuracies: list[float] = []

    def state(self) -> dict[str, Any]:
        return {
            "step_seconds": torch.tensor(self.step_seconds, dtype=torch.float64),
            "epoch_losses": torch.tensor(self.epoch_losses, dtype=torch.float64),
            "accuracies": torch.tensor(self.accuracies, dtype=torch.float64),
        }

    def load(self, step: int, state: dict[str, torch.Tensor]) -> None:
        self.step = step
        self.step_seconds = state["step_seconds"].tolist()
        self.epoch_losses = state["epoch_losses"].tolist()
        self.accuracies = state["accuracies"].tolist()

    @property
    def elapsed_seconds(self) -> float:
        return math.fsum(self.step_seconds)


class Run:
    """One run on one rank, from its start or its checkpoint to its result."""

    def __init__(
        self, plan: RunPlan, dataset: ImageDataset, group: Group, writer: RecordWriter | None
    ) -> None:
        self._plan, self._group, self._writer = plan, group, writer
        self._config: TrainConfig = plan.config
        self._fingerprint = plan.config.fingerprint(dataset.checksum)
        self._training = Training(plan.config, dataset, group)
        self._progress = _Progress()
        if plan.start_step:
            saved = checkpoint.load(plan.checkpoint, self._fingerprint)
            self._progress.load(saved.step, saved.state["progress"][group.rank])
            self._training.load_state(saved.state["training"])

    def _record(self, kind: str, **fields: Any) -> None:
        if self._writer is not None:
            names = {"method": self._config.method.name, "seed": self._config.seed}
            self._writer.write(kind, **names, **fields)

    def execute(self) -> None:
        """Train to the end and write the result."""
        training, progress = self._training, self._progress
        try:
            while progress.step < training.steps:
                self._group.check_parent()
                self._step()
                if progress.step % training.steps_per_epoch == 0:
                    self._finish_epoch()
                every = self._config.checkpoint_every
                if every and progress.step % every == 0 and progress.step < training.steps:
                    self._save()
            if self._plan.keep_final or self._config.checkpoint_every:
                self._save()
            self._finish()
        finally:
            training.close()

    def _step(self) -> None:
        training, progress = self._training, self._progress
        start = time.perf_counter()
        loss = training.step(progress.step)
        progress.step_seconds.append(time.perf_counter() - start)
        progress.epoch_losses.append(loss)
        progress.step += 1
        at_end = progress.step % training.steps_per_epoch == 0
        if progress.step % self._config.progress_every == 0 or at_end:
            self._record(
                "progress",
                step=progress.step,
                steps=training.steps,
                loss=loss,
                elapsed_seconds=progress.elapsed_seconds,
            )

    def _finish_epoch(self) -> None:
        training, progress = self._training, self._progress
        test_loss, accuracy = training.evaluate()
        own = torch.tensor([statistics.fmean(progress.epoch_losses)], dtype=torch.float64)
        train_loss = statistics.fmean(map(float, self._group.gather(own)))
        progress.epoch_losses = []
        progress.accuracies.append(accuracy)
        self._record(
            "epoch",
            epoch=progress.step // training.steps_per_epoch,
            step=progress.step,
            train_loss=train_loss,
            test_loss=test_loss,
            test_accuracy=accuracy,
            elapsed_seconds=progress.elapsed_seconds,
        )

    def _save(self) -> None:
        progress = self._group.gather_states(self._progress.state())
        state = {"training": self._training.state(), "progress": progress}
        if self._group.rank == 0:
            saved = checkpoint.Checkpoint(self._fingerprint, self._progress.step, state)
            checkpoint.save(self._plan.checkpoint, saved)

    def _finish(self) -> None:
        progress = self._progress
        bits, saved_share = self._training.traffic_and_cost()
        self._record(
            "result",
            final_accuracy=progress.accuracies[-1],
            best_accuracy=max(progress.accuracies),
            seconds_per_step=statistics.median(progress.step_seconds),
            total_seconds=progress.elapsed_seconds,
            bits_per_component=bits,
            saved_macs_share=saved_share,
            steps=progress.step,
            parameters_sha256=self._training.parameters_sha256(),
        )
