from __future__ import annotations

import math
from pathlib import Path

import pytest

from slimgrad.core.errors import DataError
from slimgrad.experiments.records import RecordWriter, read_records, write_records


def test_each_record_is_readable_as_soon_as_it_is_written(tmp_path: Path):
    file = tmp_path / "new" / "records.jsonl"
    writer = RecordWriter(file)
    writer.write("note", step=1, loss=math.nan)
    assert read_records(file) == [{"kind": "note", "step": 1, "loss": None}]
    writer.write("note", step=2)
    assert len(read_records(file)) == 2
    writer.close()


def test_writing_goes_on_after_what_is_there(tmp_path: Path):
    for step in (1, 2):
        writer = RecordWriter(tmp_path / "r")
        writer.write("note", step=step)
        writer.close()
    assert [record["step"] for record in read_records(tmp_path / "r")] == [1, 2]


@pytest.mark.parametrize("cut", ["{", '{"kind": "note", "st', "\udce9"])
def test_a_cut_last_line_is_left_out(tmp_path: Path, cut: str):
    file = tmp_path / "r"
    file.write_text('{"kind": "note", "step": 1}\n' + cut, errors="surrogateescape")
    assert [record["step"] for record in read_records(file)] == [1]


def test_a_damaged_line_is_named(tmp_path: Path):
    (tmp_path / "r").write_text('{"kind": "a"}\n{"kind":\n{"kind": "b"}\n')
    with pytest.raises(DataError, match="r, line 2 is not a JSON record"):
        read_records(tmp_path / "r")


def test_a_missing_file_is_named(tmp_path: Path):
    with pytest.raises(DataError, match=r"cannot read the records .*nowhere: No such file"):
        read_records(tmp_path / "nowhere")


def test_records_replace_what_was_there_a_cut_line_included(tmp_path: Path):
    file = tmp_path / "r"
    file.write_text('{"kind": "a"}\n{"kind": "b"}\n{"ki')
    write_records(file, [read_records(file)[1], {"kind": "c", "loss": math.inf}])
    assert file.read_text() == '{"kind": "b"}\n{"kind": "c", "loss": null}\n'


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="only Linux has /dev/full")
def test_a_full_disk_is_told_with_the_file():
    writer = RecordWriter(Path("/dev/full"))
    with pytest.raises(OSError, match="No space left on device: '/dev/full'"):
        writer.write("note")
    with pytest.raises(OSError, match="No space left on device: '/dev/full'"):
        writer.close()
