from __future__ import annotations

import hashlib
import io
import tarfile
from pathlib import Path

import numpy as np
import pytest

from slimgrad.core.errors import DataError
from slimgrad.experiments.data.cifar10 import Cifar10

IMAGES_PER_FILE = 3
NAMES = [f"data_batch_{number}.bin" for number in range(1, 6)] + ["test_batch.bin"]


def make_rows(seed: int) -> np.ndarray:
    rows = np.random.default_rng(seed).integers(0, 256, (IMAGES_PER_FILE, 3073), dtype=np.uint8)
    rows[:, 0] %= 10
    return rows


def write_archive(path: Path, names: list[str] = NAMES) -> str:
    with tarfile.open(path, "w:gz") as archive:
        for seed, name in enumerate(names):
            content = make_rows(seed).tobytes()
            member = tarfile.TarInfo(f"cifar-10-batches-bin/{name}")
            member.size = len(content)
            archive.addfile(member, io.BytesIO(content))
    return hashlib.md5(path.read_bytes(), usedforsecurity=False).hexdigest()


@pytest.fixture
def archive(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    path = tmp_path / "cifar-10-binary.tar.gz"
    monkeypatch.setattr(Cifar10, "images_per_file", IMAGES_PER_FILE)
    monkeypatch.setattr(Cifar10, "archive_md5", write_archive(path))
    return path


def check(dataset) -> None:
    rows = np.concatenate([make_rows(seed) for seed in range(5)])
    assert dataset.train.labels.tolist() == rows[:, 0].tolist()
    assert dataset.train.images.shape == (15, 3, 32, 32)
    assert (dataset.train.images[4, 1, 2].numpy() == rows[4, 1 + 1024 + 64 :][:32]).all()
    assert (dataset.test.images.numpy().reshape(3, -1) == make_rows(5)[:, 1:]).all()
    assert dataset.class_names[3] == "cat"
    assert dataset.augment == "crop_flip"


def test_the_official_archive_is_known_by_its_md5():
    assert Cifar10.archive_md5 == "c32a1d4ab5d03f1284b67883e8d87530"
    assert Cifar10.images_per_file == 10_000


def test_an_archive_is_read(archive: Path):
    check(Cifar10().read(archive))


@pytest.mark.parametrize("inner", ["", "cifar-10-batches-bin"])
def test_an_unpacked_folder_is_read(archive: Path, tmp_path: Path, inner: str):
    with tarfile.open(archive) as packed:
        packed.extractall(tmp_path / "data", filter="data")
    folder = tmp_path / "data" / "cifar-10-batches-bin"
    check(Cifar10().read(folder if inner else folder.parent))


def test_a_changed_archive_is_named_with_both_checksums(archive: Path):
    content = bytearray(archive.read_bytes())
    content[50] ^= 1
    archive.write_bytes(content)
    found = hashlib.md5(content, usedforsecurity=False).hexdigest()
    with pytest.raises(DataError) as caught:
        Cifar10().read(archive)
    message = str(caught.value)
    assert str(archive) in message
    assert f"md5 is {found}, expected {Cifar10.archive_md5}" in message
    assert "https://www.cs.toronto.edu/~kriz/cifar.html" in message


def test_an_archive_that_does_not_unpack_is_named(archive: Path, monkeypatch: pytest.MonkeyPatch):
    archive.write_bytes(archive.read_bytes()[:3000])
    md5 = hashlib.md5(archive.read_bytes(), usedforsecurity=False).hexdigest()
    monkeypatch.setattr(Cifar10, "archive_md5", md5)
    with pytest.raises(DataError, match="cannot be unpacked"):
        Cifar10().read(archive)


def test_an_archive_without_the_test_images_is_named(
    archive: Path, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr(Cifar10, "archive_md5", write_archive(archive, NAMES[:5]))
    with pytest.raises(DataError, match=r"it lacks test_batch\.bin"):
        Cifar10().read(archive)


def test_a_missing_path_is_named(tmp_path: Path):
    with pytest.raises(DataError, match=r"nowhere is missing: get cifar-10-binary.tar.gz"):
        Cifar10().files(tmp_path / "nowhere")


def unpacked(archive: Path, tmp_path: Path) -> Path:
    with tarfile.open(archive) as packed:
        packed.extractall(tmp_path, filter="data")
    return tmp_path / "cifar-10-batches-bin"


def test_a_missing_file_of_the_folder_is_named(archive: Path, tmp_path: Path):
    folder = unpacked(archive, tmp_path)
    (folder / "data_batch_4.bin").unlink()
    with pytest.raises(DataError, match=r"data_batch_4.bin is missing"):
        Cifar10().files(folder)


def test_a_short_file_of_the_folder_is_named(archive: Path, tmp_path: Path):
    file = unpacked(archive, tmp_path) / "data_batch_2.bin"
    file.write_bytes(file.read_bytes()[:-1])
    with pytest.raises(DataError, match=r"data_batch_2.bin has 9,218 bytes, not 9,219"):
        Cifar10().read(file.parent)


def test_an_impossible_class_is_named(archive: Path, tmp_path: Path):
    file = unpacked(archive, tmp_path) / "test_batch.bin"
    file.write_bytes(b"\x0b" + file.read_bytes()[1:])
    with pytest.raises(DataError, match=r"test_batch.bin holds the class 11, not 0 to 9"):
        Cifar10().read(file.parent)
