from __future__ import annotations

import pytest
import torch

from slimgrad.core.errors import ConfigError
from slimgrad.core.rng import numpy_generator
from slimgrad.experiments.data.base import ImageDataset, Split, channel_statistics
from slimgrad.experiments.data.batches import (
    Batches,
    Normalise,
    crop_flip,
    evaluation_batches,
)


@pytest.fixture
def dataset() -> ImageDataset:
    draws = numpy_generator(5).integers(0, 256, (50, 3, 8, 8), dtype="uint8")
    images = torch.from_numpy(draws)
    mean, std = channel_statistics(images)
    split = Split(images, torch.arange(50) % 4)
    return ImageDataset("made up", split, split, tuple("abcd"), mean, std, "crop_flip", "made up")


def test_ranks_share_an_epoch_without_overlap(dataset: ImageDataset):
    ranks = [Batches(dataset, 12, seed=3, rank=rank, world_size=3) for rank in range(3)]
    seen = [batches.indices(1, step) for step in range(4) for batches in ranks]
    assert ranks[0].steps_per_epoch == 4
    assert all(len(part) == 4 for part in seen)
    assert len(torch.cat(seen).unique()) == 48


def test_the_order_depends_on_seed_and_epoch_alone(dataset: ImageDataset):
    def order(seed: int, epoch: int) -> list[int]:
        batches = Batches(dataset, 48, seed=seed)
        batches.indices(7, 0)  # what was asked for before must not matter
        return batches.indices(epoch, 0).tolist()

    assert order(0, 2) == order(0, 2)
    assert order(0, 2) != order(0, 3)
    assert order(0, 2) != order(1, 2)


@pytest.mark.parametrize("world_size", [2, 4])
def test_the_world_size_changes_no_image(dataset: ImageDataset, world_size: int):
    whole, labels = Batches(dataset, 16, seed=1).batch(2, 1)
    shares = [
        Batches(dataset, 16, seed=1, rank=rank, world_size=world_size).batch(2, 1)
        for rank in range(world_size)
    ]
    assert torch.equal(torch.cat([images for images, _ in shares]), whole)
    assert torch.equal(torch.cat([part for _, part in shares]), labels)


def test_augmentation_differs_from_step_to_step_and_can_be_turned_off(dataset: ImageDataset):
    plain = Batches(dataset, 50, seed=1, augment="none")
    changed = Batches(dataset, 50, seed=1)
    assert torch.equal(plain.batch(0, 0)[0], plain.batch(0, 0)[0])
    assert torch.equal(changed.batch(0, 0)[0], changed.batch(0, 0)[0])
    assert not torch.equal(plain.batch(0, 0)[0], changed.batch(0, 0)[0])
    order0, order1 = changed.indices(0, 0), changed.indices(1, 0)
    first = changed.batch(0, 0)[0][order0.argsort()]
    second = changed.batch(1, 0)[0][order1.argsort()]
    assert not torch.equal(first, second)


def test_crop_flip_equals_one_image_at_a_time():
    draws = numpy_generator(9)
    images = torch.from_numpy(draws.integers(0, 256, (40, 2, 6, 7), dtype="uint8"))
    rows = torch.from_numpy(draws.integers(0, 9, 40))
    columns = torch.from_numpy(draws.integers(0, 9, 40))
    flip = torch.from_numpy(draws.random(40) < 0.5)
    rows[:2], columns[:2] = torch.tensor([0, 8]), torch.tensor([8, 0])
    changed = crop_flip(images, rows, columns, flip)
    for index, image in enumerate(images):
        padded = torch.zeros(2, 14, 15, dtype=torch.uint8)
        padded[:, 4:10, 4:11] = image
        top, left = int(rows[index]), int(columns[index])
        expected = padded[:, top : top + 6, left : left + 7]
        if flip[index]:
            expected = expected.flip(2)
        assert torch.equal(changed[index], expected)
    assert changed.is_contiguous(memory_format=torch.channels_last)


@pytest.mark.parametrize("layout", [torch.channels_last, torch.contiguous_format])
def test_batches_are_normalised_in_the_layout_asked_for(dataset: ImageDataset, layout):
    batches = Batches(dataset, 50, seed=0, augment="none", memory_format=layout)
    images, _ = batches.batch(0, 0)
    assert images.dtype == torch.float32
    assert images.is_contiguous(memory_format=layout)
    assert images.mean((0, 2, 3)).tolist() == pytest.approx([0, 0, 0], abs=1e-5)
    assert images.std((0, 2, 3), correction=0).tolist() == pytest.approx([1, 1, 1], abs=1e-5)


@pytest.mark.parametrize("world_size", [1, 3])
def test_evaluation_shows_every_image_once(dataset: ImageDataset, world_size: int):
    normalise = Normalise(dataset, torch.channels_last)
    parts = [
        part
        for rank in range(world_size)
        for part in evaluation_batches(dataset.test, normalise, rank, world_size, size=7)
    ]
    assert all(len(images) == len(labels) <= 7 for images, labels in parts)
    images = torch.cat([images for images, _ in parts])
    assert len(images) == 50
    assert len(torch.unique(images.flatten(1), dim=0)) == 50


def test_a_batch_larger_than_the_data_is_refused(dataset: ImageDataset):
    with pytest.raises(ConfigError, match=r"batch_size = 51: .* has only 50 training images"):
        Batches(dataset, 51, seed=0)
