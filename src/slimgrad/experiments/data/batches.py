"""Batches as a pure function of (seed, epoch, step): any worker, any moment, the same images."""

from __future__ import annotations

import torch
import torch.nn.functional as F

from slimgrad.core.errors import ConfigError
from slimgrad.core.rng import numpy_generator, permutation, stream_key
from slimgrad.experiments.data.base import Augment, ImageDataset, Split

_PAD = 4


def crop_flip(
    images: torch.Tensor, rows: torch.Tensor, columns: torch.Tensor, flip: torch.Tensor
) -> torch.Tensor:
    """Images shifted by up to 4 pixels over black, and mirrored where ``flip`` says so.

    Args:
        images: uint8, (N, C, H, W).
        rows: int64, (N,), from 0 to 8: where the image begins; 4 leaves it in place.
        columns: as ``rows``, across.
        flip: bool, (N,).

    Returns:
        uint8, (N, C, H, W), channels last in memory.
    """
    n, _, height, width = images.shape
    padded = F.pad(images, (_PAD, _PAD, _PAD, _PAD))
    across = torch.arange(width).expand(n, width)
    across = torch.where(flip[:, None], width - 1 - across, across) + columns[:, None]
    down = torch.arange(height)[None, :] + rows[:, None]
    which = torch.arange(n)[:, None, None]
    picked = padded.permute(0, 2, 3, 1)[which, down[:, :, None], across[:, None, :]]
    return picked.permute(0, 3, 1, 2)


class Batches:
    """The training batches of one rank.

    The order of an epoch is a permutation keyed by (seed, epoch). A step takes the next
    ``batch_size`` images of it, and each rank an equal part of those; images left over at the end
    of an epoch are dropped. Random changes are drawn for the whole batch, keyed by
    (seed, epoch, step), and each rank uses its own rows: the world size changes no image.
    """

    def __init__(
        self,
        dataset: ImageDataset,
        batch_size: int,
        *,
        seed: int,
        rank: int = 0,
        world_size: int = 1,
        augment: Augment | None = None,
        memory_format: torch.memory_format = torch.channels_last,
    ) -> None:
        if batch_size > len(dataset.train):
            raise ConfigError(
                f"batch_size = {batch_size}: data set {dataset.name} "
                f"has only {len(dataset.train)} training images"
            )
        self._split = dataset.train
        self._batch_size = batch_size
        self._share = batch_size // world_size
        self._seed = seed
        self._rank = rank
        self._augment = augment or dataset.augment
        self._normalise = Normalise(dataset, memory_format)
        self._order: tuple[int, torch.Tensor] | None = None

    @property
    def steps_per_epoch(self) -> int:
        """Whole batches in an epoch."""
        return len(self._split) // self._batch_size

    def _epoch_order(self, epoch: int) -> torch.Tensor:
        if self._order is None or self._order[0] != epoch:
            key = stream_key(self._seed, epoch, "data order")
            self._order = (epoch, permutation(key, len(self._split)))
        return self._order[1]

    def indices(self, epoch: int, step: int) -> torch.Tensor:
        """Which training images this rank takes, int64."""
        start = step * self._batch_size + self._rank * self._share
        return self._epoch_order(epoch)[start : start + self._share]

    def batch(self, epoch: int, step: int) -> tuple[torch.Tensor, torch.Tensor]:
        """Normalised images and labels of this rank.

        Args:
            epoch: from 0.
            step: from 0, within the epoch.

        Returns:
            float32 images (N / world_size, C, H, W) and int64 labels.
        """
        chosen = self.indices(epoch, step)
        images = self._split.images[chosen]
        if self._augment == "crop_flip":
            position = epoch * self.steps_per_epoch + step
            draws = numpy_generator(stream_key(self._seed, position, "augmentation"))
            numbers = torch.from_numpy(draws.integers(0, 2 * _PAD + 1, (2, self._batch_size)))
            flips = torch.from_numpy(draws.random(self._batch_size) < 0.5)
            own = slice(self._rank * self._share, (self._rank + 1) * self._share)
            images = crop_flip(images, numbers[0, own], numbers[1, own], flips[own])
        return self._normalise(images), self._split.labels[chosen]


class Normalise:
    """uint8 pixels to float32 of mean 0 and deviation 1 over the training images."""

    def __init__(self, dataset: ImageDataset, memory_format: torch.memory_format) -> None:
        shape = (1, -1, 1, 1)
        scale = 1 / (255 * torch.tensor(dataset.std, dtype=torch.float64))
        mean = torch.tensor(dataset.mean, dtype=torch.float64)
        self._scale = scale.float().view(shape)
        self._shift = (-mean * 255 * scale).float().view(shape)
        self._memory_format = memory_format

    def __call__(self, images: torch.Tensor) -> torch.Tensor:
        """Normalised copies of ``images``."""
        floats = images.to(torch.float32, memory_format=self._memory_format)
        return floats.mul_(self._scale).add_(self._shift)


def evaluation_batches(
    split: Split, normalise: Normalise, rank: int, world_size: int, size: int = 250
) -> list[tuple[torch.Tensor, torch.Tensor]]:
    """This rank's share of a test split: every image is in exactly one rank's batches."""
    chosen = torch.arange(rank, len(split), world_size)
    return [
        (normalise(split.images[part]), split.labels[part])
        for part in chosen.split(size)
        if len(part)
    ]
