"""Data sets: readers of original files, a cache of decoded images, batches."""

from __future__ import annotations

from pathlib import Path

from slimgrad.core.registry import Registry
from slimgrad.experiments.data.base import DatasetReader, ImageDataset
from slimgrad.experiments.data.cache import cached
from slimgrad.experiments.data.cifar10 import Cifar10
from slimgrad.experiments.data.digits import Digits
from slimgrad.experiments.data.fashion_mnist import FashionMnist
from slimgrad.experiments.data.folders import Folders

DATASETS: Registry[type[DatasetReader]] = Registry("data set")
for _reader in (Digits, Cifar10, Folders, FashionMnist):
    DATASETS.add(_reader.name)(_reader)


def load(
    name: str, path: Path | None = None, cache_dir: Path | None = None
) -> tuple[ImageDataset, Path]:
    """A data set by name, decoded at most once, and the cache file that holds it.

    Args:
        name: registry name.
        path: archive or folder, where the data set needs one.
        cache_dir: folder for decoded images; ``$XDG_CACHE_HOME/slimgrad`` or
            ``~/.cache/slimgrad`` when not given.

    Raises:
        ConfigError: unknown name.
        DataError: a file is missing or corrupt.
    """
    return cached(DATASETS.get(name)(), path, cache_dir)
