from __future__ import annotations

from pathlib import Path

import pytest
import torch
from safetensors.torch import save_file

from slimgrad.core.errors import CheckpointError
from slimgrad.experiments import files
from slimgrad.experiments.checkpoint import Checkpoint, load, save


@pytest.fixture
def state() -> dict:
    shared = torch.arange(12.0).reshape(3, 4)
    layout = torch.randn(2, 3, 4, 5).to(memory_format=torch.channels_last)
    return {
        "shared": [shared, shared.t()],
        "layout": layout,
        "flag": torch.tensor(True),
        "bytes": torch.zeros(0, dtype=torch.uint8),
        "count": 7,
    }


def test_a_state_comes_back_to_the_last_bit(tmp_path: Path, state: dict):
    save(tmp_path / "c", Checkpoint("print", 5, state))
    again = load(tmp_path / "c", "print")
    assert (again.step, again.fingerprint) == (5, "print")
    assert torch.equal(again.state["shared"][1], state["shared"][1])
    assert torch.equal(again.state["layout"], state["layout"])
    assert bool(again.state["flag"])
    assert again.state["bytes"].dtype == torch.uint8
    assert again.state["count"] == 7


def test_another_configuration_is_refused(tmp_path: Path, state: dict):
    save(tmp_path / "c", Checkpoint("print", 5, state))
    with pytest.raises(CheckpointError, match=r"c belongs to another configuration") as caught:
        load(tmp_path / "c", "other")
    assert "\n" not in str(caught.value)
    assert load(tmp_path / "c").step == 5


def test_a_missing_file_is_named(tmp_path: Path):
    with pytest.raises(CheckpointError, match=r"cannot read the checkpoint .*nowhere"):
        load(tmp_path / "nowhere")


@pytest.mark.parametrize("kept", [0, 5, 100, -1])
def test_a_truncated_file_is_named(tmp_path: Path, state: dict, kept: int):
    file = tmp_path / "c"
    save(file, Checkpoint("print", 5, state))
    file.write_bytes(file.read_bytes()[:kept])
    with pytest.raises(CheckpointError, match="cannot read the checkpoint") as caught:
        load(file)
    assert "\n" not in str(caught.value)


def test_a_flipped_bit_is_found(tmp_path: Path, state: dict):
    file = tmp_path / "c"
    save(file, Checkpoint("print", 5, state))
    content = bytearray(file.read_bytes())
    content[-3] ^= 1
    file.write_bytes(content)
    with pytest.raises(CheckpointError, match="c is damaged: its checksum does not match"):
        load(file)


def test_another_safetensors_file_is_refused(tmp_path: Path):
    save_file({"x": torch.ones(1)}, tmp_path / "c")
    with pytest.raises(CheckpointError, match="c is no checkpoint of slimgrad"):
        load(tmp_path / "c")


def test_a_crash_while_writing_leaves_the_last_checkpoint(
    tmp_path: Path, state: dict, monkeypatch: pytest.MonkeyPatch
):
    file = tmp_path / "c"
    save(file, Checkpoint("print", 5, state))

    def half(path: Path, content: bytes) -> None:
        path.write_text("half")
        raise OSError("no space left on device")

    monkeypatch.setattr(Path, "write_bytes", half)
    with pytest.raises(OSError, match="no space left"):
        save(file, Checkpoint("print", 6, state))
    monkeypatch.undo()
    assert load(file, "print").step == 5
    assert list(tmp_path.iterdir()) == [file]


def test_the_content_is_on_the_disk_before_the_name_changes(
    tmp_path: Path, state: dict, monkeypatch: pytest.MonkeyPatch
):
    order = []
    sync, replace = files._sync, Path.replace
    monkeypatch.setattr(files, "_sync", lambda path: (order.append("sync"), sync(path)))
    monkeypatch.setattr(
        Path, "replace", lambda path, target: (order.append("rename"), replace(path, target))
    )
    save(tmp_path / "c", Checkpoint("print", 5, state))
    assert order == ["sync", "rename", "sync"]
