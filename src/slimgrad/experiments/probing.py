"""A built-in network with batches of a data set, as a subject for measurements."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import torch
import torch.nn.functional as F
from torch import nn

from slimgrad.core.errors import ConfigError
from slimgrad.experiments.data import load
from slimgrad.experiments.data.batches import Batches
from slimgrad.experiments.models import ImageShape, make_model
from slimgrad.experiments.parts import PartConfig

Batch = tuple[torch.Tensor, torch.Tensor]
_RATE, _MOMENTUM = 0.05, 0.9


class Subject:
    """A network and the batches it is measured on.

    Args:
        data: registry name of the data set.
        data_dir: archive or folder, where the data set needs one.
        model: network in the short form ``name:key=value``.
        batch_size: images a batch.
        seed: of parameters and data order.

    Attributes:
        network: in training mode.
    """

    def __init__(
        self, data: str, data_dir: Path | None, model: str, batch_size: int, seed: int
    ) -> None:
        if batch_size < 1:
            raise ConfigError(f"batch_size = {batch_size}: must be at least 1")
        dataset, _ = load(data, data_dir)
        images = dataset.train.images
        shape = ImageShape(images.shape[1], images.shape[2], len(dataset.class_names))
        part = PartConfig.model_validate(model)
        self.network: nn.Module = make_model(part.name, shape, part.settings, seed=seed).train()
        self._batches = Batches(dataset, batch_size, seed=seed, augment="none")

    def batches(self, *, first: int, count: int) -> list[Batch]:
        """Batches number ``first`` and following, of as many passes over the data as that takes."""
        per_epoch = self._batches.steps_per_epoch
        return [
            self._batches.batch(number // per_epoch, number % per_epoch)
            for number in range(first, first + count)
        ]

    def train(self, network: nn.Module, steps: int) -> None:
        """Train with exact gradients by SGD for ``steps`` batches."""
        if steps < 0:
            raise ConfigError(f"train_steps = {steps}: must be 0 or more")
        optimizer = torch.optim.SGD(network.parameters(), lr=_RATE, momentum=_MOMENTUM)
        for batch in self.batches(first=0, count=steps):
            optimizer.zero_grad()
            self.loss(network, batch).backward()
            optimizer.step()
        optimizer.zero_grad()

    @staticmethod
    def loss(network: nn.Module, batch: Any) -> torch.Tensor:
        """Cross entropy of one batch."""
        images, labels = batch
        return F.cross_entropy(network(images), labels)
