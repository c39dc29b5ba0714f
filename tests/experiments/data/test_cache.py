from __future__ import annotations

import os
import stat
from pathlib import Path

import pytest
import torch
from PIL import Image

from slimgrad.core.errors import ConfigError, DataError, SlimgradWarning
from slimgrad.experiments.data import load
from slimgrad.experiments.data.cache import cached, default_cache_dir, read_cache
from slimgrad.experiments.data.folders import Folders


def test_images_are_decoded_once(
    class_folders: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    first, file = load("folders", class_folders, tmp_path / "cache")
    monkeypatch.setattr(Folders, "read", None)
    again, same_file = load("folders", class_folders, tmp_path / "cache")
    assert same_file == file
    assert torch.equal(first.train.images, again.train.images)
    assert torch.equal(first.test.labels, again.test.labels)
    assert (first.mean, first.class_names) == (again.mean, again.class_names)
    assert first.checksum == again.checksum != ""
    assert [path.name for path in file.parent.iterdir()] == [file.name]


def test_a_changed_image_gets_another_cache_file(class_folders: Path, tmp_path: Path):
    before, file = load("folders", class_folders, tmp_path / "cache")
    changed = class_folders / "train" / "dark" / "000.png"
    Image.new("RGB", (8, 8), (1, 2, 3)).save(changed)
    os.utime(changed, ns=(0, 1))
    after, other_file = load("folders", class_folders, tmp_path / "cache")
    assert other_file != file
    assert after.train.images[0, :, 0, 0].tolist() == [1, 2, 3]
    assert after.checksum != before.checksum


@pytest.mark.parametrize("where", ["header", "values", "end", "all"])
def test_a_damaged_cache_is_said_and_built_again(class_folders: Path, tmp_path: Path, where: str):
    good, file = load("folders", class_folders, tmp_path / "cache")
    content = bytearray(file.read_bytes())
    if where == "all":
        content = bytearray()
    elif where == "end":
        del content[-10:]
    else:
        content[20 if where == "header" else -100] ^= 0xFF
    file.write_bytes(content)
    with pytest.raises(DataError, match=r"cached images .* are damaged"):
        read_cache(file)
    with pytest.warns(SlimgradWarning, match="damaged.*decoding the images again"):
        again, _ = load("folders", class_folders, tmp_path / "cache")
    assert torch.equal(again.train.images, good.train.images)
    assert read_cache(file).checksum == good.checksum


def test_the_default_folder_follows_the_environment(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    assert default_cache_dir() == tmp_path / "slimgrad"
    monkeypatch.delenv("XDG_CACHE_HOME")
    monkeypatch.setenv("HOME", str(tmp_path))
    assert default_cache_dir() == tmp_path / ".cache" / "slimgrad"


def test_a_folder_that_cannot_be_made_is_named(class_folders: Path, tmp_path: Path):
    (tmp_path / "file").touch()
    with pytest.raises(DataError, match=r"another folder with the variable XDG_CACHE_HOME"):
        cached(Folders(), class_folders, tmp_path / "file")


def test_cache_files_can_be_read_by_others(class_folders: Path, tmp_path: Path):
    _, file = load("folders", class_folders, tmp_path / "cache")
    assert stat.S_IMODE(file.stat().st_mode) == 0o644


def test_an_unknown_data_set_gets_the_nearest_name():
    with pytest.raises(ConfigError, match="did you mean 'cifar10'"):
        load("cifar-10")


def test_a_file_that_has_gone_is_named(class_folders: Path, tmp_path: Path):
    (class_folders / "train" / "dark" / "gone.png").symlink_to("nowhere")
    with pytest.raises(DataError, match=r"gone\.png cannot be read \(No such file.*replace it"):
        cached(Folders(), class_folders, tmp_path / "cache")
