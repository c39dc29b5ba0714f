from __future__ import annotations

import gzip
import struct
from pathlib import Path

import numpy as np
import pytest

from slimgrad.core.errors import DataError
from slimgrad.experiments.data.fashion_mnist import FashionMnist


def write_idx(file: Path, values: np.ndarray, kind: int = 8) -> None:
    head = struct.pack(f">HBB{values.ndim}I", 0, kind, values.ndim, *values.shape)
    file.write_bytes(gzip.compress(head + values.astype(np.uint8).tobytes()))


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    for split, count in (("train", 6), ("t10k", 4)):
        images = np.arange(count * 9).reshape(count, 3, 3)
        write_idx(tmp_path / f"{split}-images-idx3-ubyte.gz", images)
        write_idx(tmp_path / f"{split}-labels-idx1-ubyte.gz", np.arange(count) % 10)
    return tmp_path


def test_the_four_files_are_read(folder: Path):
    dataset = FashionMnist().read(folder)
    assert dataset.train.images.shape == (6, 1, 3, 3)
    assert dataset.train.images[1, 0, 0].tolist() == [9, 10, 11]
    assert dataset.test.labels.tolist() == [0, 1, 2, 3]
    assert dataset.augment == "none"


def test_a_missing_file_is_named(folder: Path):
    (folder / "t10k-labels-idx1-ubyte.gz").unlink()
    with pytest.raises(DataError, match=r"t10k-labels-idx1-ubyte.gz is missing"):
        FashionMnist().files(folder)


@pytest.mark.parametrize("kept", [0, 3, 40])
def test_a_truncated_file_is_named_with_its_checksum(folder: Path, kept: int):
    file = folder / "train-images-idx3-ubyte.gz"
    file.write_bytes(file.read_bytes()[:kept])
    with pytest.raises(DataError, match=r"train-images-idx3-ubyte.gz is corrupt: .*sha256"):
        FashionMnist().read(folder)


def test_an_idx_file_of_other_values_is_refused(folder: Path):
    write_idx(folder / "train-labels-idx1-ubyte.gz", np.arange(6), kind=9)
    with pytest.raises(DataError, match="no idx file of unsigned bytes"):
        FashionMnist().read(folder)


def test_files_that_do_not_fit_together_are_refused(folder: Path):
    write_idx(folder / "train-labels-idx1-ubyte.gz", np.arange(5))
    with pytest.raises(DataError, match="do not fit together"):
        FashionMnist().read(folder)
