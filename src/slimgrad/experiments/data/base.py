"""What a data set is, and what reads one."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from pathlib import Path
from typing import ClassVar, Literal

import torch

from slimgrad.core.errors import DataError
from slimgrad.experiments.files import file_checksum

Augment = Literal["none", "crop_flip"]


@dataclass(frozen=True)
class Split:
    """Images and their classes.

    Attributes:
        images: uint8, (N, C, H, W).
        labels: int64, (N,).
    """

    images: torch.Tensor
    labels: torch.Tensor

    def __len__(self) -> int:
        return self.labels.numel()


@dataclass(frozen=True)
class ImageDataset:
    """A data set for classification.

    Attributes:
        name: registry name.
        train, test: the two splits.
        class_names: one for each class.
        mean, std: of the training images, per channel, for pixels in [0, 1].
        augment: random changes of training images that suit it.
        provenance: where the images come from, for reports.
        checksum: digest of all images and labels; "" before it was cached.
    """

    name: str
    train: Split
    test: Split
    class_names: tuple[str, ...]
    mean: tuple[float, ...]
    std: tuple[float, ...]
    augment: Augment
    provenance: str
    checksum: str = ""

    @property
    def channels(self) -> int:
        """Channels of an image."""
        return self.train.images.shape[1]

    @property
    def image_size(self) -> int:
        """Rows of an image, equal to its columns."""
        return self.train.images.shape[2]


class DatasetReader(ABC):
    """Reads one data set from its original files.

    Attributes:
        name: registry name, equal to the file name.
        needs_path: whether the user must say where the files are.
        path_means: what the path must point to, for errors and help.
    """

    name: ClassVar[str]
    needs_path: ClassVar[bool] = True
    path_means: ClassVar[str]

    @abstractmethod
    def files(self, path: Path | None) -> list[Path]:
        """Every file the data set is read from; DataError when one is missing."""

    @abstractmethod
    def read(self, path: Path | None) -> ImageDataset:
        """The decoded data set; DataError naming the file that is altered."""


def channel_statistics(images: torch.Tensor) -> tuple[tuple[float, ...], tuple[float, ...]]:
    """Mean and standard deviation per channel of uint8 images, for pixels in [0, 1].

    Exact sums over a histogram, so that no float copy of the images is made.

    >>> channel_statistics(torch.tensor([[[[0, 255]]]], dtype=torch.uint8))
    ((0.5,), (0.5,))
    """
    values = torch.arange(256, dtype=torch.float64) / 255
    means, deviations = [], []
    for channel in range(images.shape[1]):
        counts = torch.bincount(images[:, channel].flatten(), minlength=256).double()
        share = counts / counts.sum()
        mean = float((share * values).sum())
        means.append(mean)
        deviations.append(float((share * (values - mean) ** 2).sum().sqrt()))
    return tuple(means), tuple(max(deviation, 1e-6) for deviation in deviations)


def require_file(path: Path, advice: str) -> Path:
    """``path`` itself; DataError naming it when there is no such file."""
    if not path.is_file():
        raise DataError(f"the data file {path} is missing: {advice}")
    return path


def altered(path: Path, found: str, advice: str, algorithm: str = "sha256") -> DataError:
    """The error for a file whose content is not what it must be."""
    checksum = file_checksum(path, algorithm)
    size = path.stat().st_size
    return DataError(
        f"the data file {path} is corrupt: {found} "
        f"({algorithm} {checksum}, {size:,} bytes): {advice}"
    )
