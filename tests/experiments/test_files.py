from __future__ import annotations

import hashlib
from pathlib import Path

import pytest

from slimgrad.experiments.files import file_checksum, slug, write_atomically


def test_a_failed_write_leaves_the_old_file_and_nothing_else(tmp_path: Path):
    target = tmp_path / "file"
    write_atomically(target, lambda file: file.write_text("old"))

    def fail_half_way(file: Path) -> None:
        file.write_text("ne")
        raise RuntimeError("disk full")

    with pytest.raises(RuntimeError, match="disk full"):
        write_atomically(target, fail_half_way)
    assert target.read_text() == "old"
    assert list(tmp_path.iterdir()) == [target]


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="only Linux has /dev/full")
def test_a_full_disk_is_told_with_the_file(tmp_path: Path):
    with pytest.raises(OSError, match=rf"No space left on device: '{tmp_path}/file'"):
        write_atomically(tmp_path / "file", lambda file: Path("/dev/full").write_text("x"))
    assert list(tmp_path.iterdir()) == []


def test_the_old_file_is_whole_until_the_new_one_is(tmp_path: Path):
    target = tmp_path / "file"
    write_atomically(target, lambda file: file.write_text("old"))
    seen = []

    def write(file: Path) -> None:
        file.write_text("new")
        seen.append(target.read_text())

    write_atomically(target, write)
    assert (seen, target.read_text()) == (["old"], "new")


@pytest.mark.parametrize("algorithm", ["md5", "sha256"])
def test_checksums_are_those_of_the_whole_file(tmp_path: Path, algorithm: str):
    file = tmp_path / "file"
    content = bytes(range(256)) * 5000
    file.write_bytes(content)
    assert file_checksum(file, algorithm) == hashlib.new(algorithm, content).hexdigest()


def test_a_slug_is_never_empty():
    assert slug("+/+") == "run"
    assert slug("Top-1 + NUQSGD (4 bits)") == "top-1-nuqsgd-4-bits"
