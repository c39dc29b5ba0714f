"""Fashion-MNIST from its four compressed idx files."""

from __future__ import annotations

import gzip
import struct
import zlib
from pathlib import Path

import numpy as np
import torch

from slimgrad.core.errors import DataError
from slimgrad.experiments.data.base import (
    DatasetReader,
    ImageDataset,
    Split,
    altered,
    channel_statistics,
    require_file,
)

_NAMES = tuple(
    f"{split}-{kind}-ubyte.gz"
    for split in ("train", "t10k")
    for kind in ("images-idx3", "labels-idx1")
)
_CLASSES = (
    "T-shirt/top",
    "Trouser",
    "Pullover",
    "Dress",
    "Coat",
    "Sandal",
    "Shirt",
    "Sneaker",
    "Bag",
    "Ankle boot",
)
_UNSIGNED_BYTE = 8
_ADVICE = "get the four files from https://github.com/zalandoresearch/fashion-mnist"


class FashionMnist(DatasetReader):
    """70,000 grey pictures of clothes, 28x28 (Xiao et al., 2017): 60,000 train, 10,000 test."""

    name = "fashion_mnist"
    path_means = f"the folder that holds {_NAMES[0]} and three more idx files"

    def files(self, path: Path | None) -> list[Path]:
        """The four files."""
        assert path is not None
        return [require_file(path / name, _ADVICE) for name in _NAMES]

    def read(self, path: Path | None) -> ImageDataset:
        """The data set; DataError naming the file that is altered."""
        arrays = [_read_idx(file) for file in self.files(path)]
        splits = []
        for images, labels in zip(arrays[::2], arrays[1::2], strict=True):
            if images.ndim != 3 or labels.shape != images.shape[:1]:
                raise DataError(
                    f"the files in {path} do not fit together: images {images.shape}, "
                    f"labels {labels.shape}: {_ADVICE}"
                )
            splits.append(Split(torch.from_numpy(images)[:, None], torch.from_numpy(labels).long()))
        mean, std = channel_statistics(splits[0].images)
        return ImageDataset(
            name=self.name,
            train=splits[0],
            test=splits[1],
            class_names=_CLASSES,
            mean=mean,
            std=std,
            augment="none",
            provenance="Fashion-MNIST, original idx files",
        )


def _read_idx(file: Path) -> np.ndarray:
    """The unsigned bytes of an idx file: magic, sizes, then the values in row-major order."""
    try:
        content = gzip.decompress(file.read_bytes())
        zeros, kind, dimensions = struct.unpack_from(">HBB", content)
        shape = struct.unpack_from(f">{dimensions}I", content, 4)
        values = np.frombuffer(content, np.uint8, offset=4 + 4 * dimensions).reshape(shape)
    except (OSError, EOFError, zlib.error, struct.error, ValueError) as error:
        raise altered(file, f"it cannot be read ({error})", _ADVICE) from None
    if zeros or kind != _UNSIGNED_BYTE:
        raise altered(file, "it is no idx file of unsigned bytes", _ADVICE)
    return values.copy()
