from __future__ import annotations

import itertools
import shutil
from pathlib import Path

import numpy as np
import pytest
import torch
from PIL import Image

from slimgrad.core.errors import DataError
from slimgrad.experiments.data.folders import Folders


def test_images_and_classes_are_read_in_the_order_of_their_names(class_folders: Path):
    dataset = Folders().read(class_folders)
    assert dataset.class_names == ("dark", "light")
    assert dataset.train.images.shape == (64, 3, 8, 8)
    assert dataset.train.labels.tolist() == [0] * 32 + [1] * 32
    assert len(dataset.test) == 16
    with Image.open(class_folders / "train" / "light" / "005.png") as image:
        expected = torch.from_numpy(np.asarray(image).copy()).permute(2, 0, 1)
    assert torch.equal(dataset.train.images[37], expected)
    assert "lossy" not in dataset.provenance


def test_jpeg_images_are_said_to_be_lossy(class_folders: Path):
    Image.new("RGB", (8, 8)).save(class_folders / "train" / "dark" / "x.JPG", format="jpeg")
    dataset = Folders().read(class_folders)
    assert dataset.provenance == "class folders images, 81 images, JPEG (lossy)"


def test_grey_images_have_one_channel(tmp_path: Path):
    for split, name in itertools.product(("train", "test"), ("a", "b")):
        folder = tmp_path / split / name
        folder.mkdir(parents=True)
        Image.new("L", (5, 5), 7).save(folder / "0.png")
        Image.new("RGB", (5, 5), (9, 9, 9)).save(folder / "1.png")
    images = Folders().read(tmp_path).train.images
    assert images[:, :, 0, 0].tolist() == [[7], [9], [7], [9]]


@pytest.mark.parametrize(("number", "mode"), [("000", "I;16"), ("005", "I;16"), ("000", "F")])
def test_images_of_more_than_8_bits_are_refused_not_cut(
    class_folders: Path, number: str, mode: str
):
    file = class_folders / "train" / "dark" / f"{number}.tiff"
    file.with_suffix(".png").unlink()
    values = np.full((8, 8), 300, np.float32 if mode == "F" else np.uint16)
    Image.fromarray(values).save(file)
    with pytest.raises(DataError, match=rf"{number}.tiff has more than 8 bits .*\(mode {mode}\)"):
        Folders().read(class_folders)


@pytest.mark.parametrize("split", ["train", "test"])
def test_a_missing_split_is_named(class_folders: Path, split: str):
    shutil.rmtree(class_folders / split)
    with pytest.raises(DataError, match=rf"images/{split} is missing: expected train/CLASS/IMAGE"):
        Folders().files(class_folders)


def test_an_empty_split_is_named(class_folders: Path):
    shutil.rmtree(class_folders / "test")
    (class_folders / "test").mkdir()
    with pytest.raises(DataError, match="images/test holds no images"):
        Folders().files(class_folders)


def test_an_image_outside_a_class_is_named(class_folders: Path):
    Image.new("RGB", (8, 8)).save(class_folders / "train" / "stray.png")
    with pytest.raises(DataError, match=r"stray.png is in the wrong place"):
        Folders().read(class_folders)


@pytest.mark.parametrize("split", ["train", "test"])
def test_a_class_of_one_split_alone_is_named(class_folders: Path, split: str):
    shutil.copytree(class_folders / split / "dark", class_folders / split / "dusky")
    with pytest.raises(DataError, match=f"{split}/dusky has no counterpart in "):
        Folders().files(class_folders)


@pytest.mark.parametrize("split", ["train", "test"])
def test_an_empty_class_is_named(class_folders: Path, split: str):
    for image in (class_folders / split / "dark").iterdir():
        image.rename(image.with_suffix(".txt"))
    with pytest.raises(DataError, match=f"the class folder .*{split}/dark holds no images"):
        Folders().files(class_folders)


def test_one_class_is_refused(class_folders: Path):
    for split in ("train", "test"):
        shutil.rmtree(class_folders / split / "dark")
    with pytest.raises(DataError, match=r"train/light is the only class: .* two or more"):
        Folders().files(class_folders)


def test_files_that_are_no_images_are_left_out(class_folders: Path):
    (class_folders / "train" / "dark" / "readme.txt").write_text("hello")
    (class_folders / "train" / ".DS_Store").touch()
    (class_folders / "train" / "dark" / "folder.png").mkdir()
    assert len(Folders().read(class_folders).train) == 64


@pytest.mark.parametrize("name", ["000.png", "017.png"])
def test_an_image_that_cannot_be_decoded_is_named_with_its_checksum(class_folders: Path, name: str):
    file = class_folders / "train" / "dark" / name
    file.write_bytes(file.read_bytes()[:60])
    with pytest.raises(DataError, match=rf"{name} is corrupt: .*sha256 [0-9a-f]{{64}}, 60 bytes"):
        Folders().read(class_folders)


def test_a_file_that_is_no_image_is_named(class_folders: Path):
    (class_folders / "train" / "dark" / "000.png").write_bytes(b"")
    with pytest.raises(DataError, match=r"000.png is corrupt: it cannot be decoded"):
        Folders().read(class_folders)


def test_an_image_of_another_size_is_named(class_folders: Path):
    Image.new("RGB", (8, 9)).save(class_folders / "train" / "dark" / "003.png")
    with pytest.raises(DataError, match=r"003.png is 8x9, the first is 8x8"):
        Folders().read(class_folders)


def test_images_that_are_not_square_are_refused(class_folders: Path):
    Image.new("RGB", (8, 9)).save(class_folders / "train" / "dark" / "000.png")
    with pytest.raises(DataError, match=r"000.png is 8x9: images must be square"):
        Folders().read(class_folders)
