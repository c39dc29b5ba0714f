"""CIFAR-10 from the official binary archive."""

from __future__ import annotations

import tarfile
import zlib
from pathlib import Path, PurePosixPath
from typing import ClassVar

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
from slimgrad.experiments.files import file_checksum

_SIZE, _CHANNELS = 32, 3
_RECORD_BYTES = 1 + _CHANNELS * _SIZE * _SIZE
_TRAIN = tuple(f"data_batch_{number}.bin" for number in range(1, 6))
_TEST = "test_batch.bin"
_FOLDER = "cifar-10-batches-bin"
# In the order of batches.meta.txt.
_CLASSES = (
    "airplane",
    "automobile",
    "bird",
    "cat",
    "deer",
    "dog",
    "frog",
    "horse",
    "ship",
    "truck",
)
_GET_IT = "get cifar-10-binary.tar.gz from https://www.cs.toronto.edu/~kriz/cifar.html"


class Cifar10(DatasetReader):
    """60,000 photographs of 32x32 in ten classes (Krizhevsky, 2009): 50,000 train, 10,000 test.

    Reads the official *binary* archive or the folder unpacked from it; nothing is unpickled.
    """

    name = "cifar10"
    path_means = "the file cifar-10-binary.tar.gz, or the folder unpacked from it"
    archive_md5: ClassVar[str] = "c32a1d4ab5d03f1284b67883e8d87530"
    images_per_file: ClassVar[int] = 10_000

    def files(self, path: Path | None) -> list[Path]:
        """The archive, or the six files of the folder."""
        assert path is not None
        if not path.exists():
            raise DataError(f"the data file {path} is missing: {_GET_IT}")
        if path.is_file():
            return [path]
        folder = path / _FOLDER if (path / _FOLDER).is_dir() else path
        advice = f"unpack the whole archive again, or {_GET_IT}"
        return [require_file(folder / name, advice) for name in (*_TRAIN, _TEST)]

    def read(self, path: Path | None) -> ImageDataset:
        """The data set; DataError naming the file that is missing or altered."""
        files = self.files(path)
        if len(files) == 1:
            contents = self._unpack(files[0])
            places = dict.fromkeys(contents, files[0])
        else:
            contents = {file.name: file.read_bytes() for file in files}
            places = {file.name: file for file in files}
        splits = {name: self._decode(contents[name], name, places[name]) for name in contents}
        train = [splits[name] for name in _TRAIN]
        images = torch.cat([split.images for split in train])
        mean, std = channel_statistics(images)
        return ImageDataset(
            name=self.name,
            train=Split(images, torch.cat([split.labels for split in train])),
            test=splits[_TEST],
            class_names=_CLASSES,
            mean=mean,
            std=std,
            augment="crop_flip",
            provenance="CIFAR-10, official binary version",
        )

    def _unpack(self, archive: Path) -> dict[str, bytes]:
        found = file_checksum(archive, "md5")
        if found != self.archive_md5:
            reason = f"its md5 is {found}, expected {self.archive_md5}"
            raise altered(archive, reason, _GET_IT)
        contents: dict[str, bytes] = {}
        try:
            with tarfile.open(archive, "r:gz") as packed:
                for member in packed:
                    name = PurePosixPath(member.name).name
                    if name in (*_TRAIN, _TEST) and (file := packed.extractfile(member)):
                        contents[name] = file.read()
        except (tarfile.TarError, OSError, EOFError, zlib.error) as error:
            raise altered(archive, f"it cannot be unpacked ({error})", _GET_IT) from None
        missing = [name for name in (*_TRAIN, _TEST) if name not in contents]
        if missing:
            raise altered(archive, f"it lacks {missing[0]}", _GET_IT)
        return contents

    def _decode(self, content: bytes, name: str, place: Path) -> Split:
        expected = self.images_per_file * _RECORD_BYTES
        if len(content) != expected:
            raise altered(place, f"{name} has {len(content):,} bytes, not {expected:,}", _GET_IT)
        rows = np.frombuffer(content, np.uint8).reshape(-1, _RECORD_BYTES)
        if rows[:, 0].max() >= len(_CLASSES):
            raise altered(place, f"{name} holds the class {rows[:, 0].max()}, not 0 to 9", _GET_IT)
        images = torch.from_numpy(rows[:, 1:].copy()).view(-1, _CHANNELS, _SIZE, _SIZE)
        return Split(images, torch.from_numpy(rows[:, 0].astype(np.int64)))
