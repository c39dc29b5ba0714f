from __future__ import annotations

import sys
from pathlib import Path

import pytest

from slimgrad.cli.outfolder import is_main_process, own_folder
from slimgrad.core.errors import ConfigError


def test_a_new_folder_is_made_and_kept_when_used(tmp_path: Path) -> None:
    out = tmp_path / "runs" / "first"
    with own_folder(out):
        (out / "records.jsonl").touch()
    assert [path.name for path in out.iterdir()] == ["records.jsonl"]


def test_a_new_folder_that_stays_empty_is_removed_with_its_parents(tmp_path: Path) -> None:
    (tmp_path / "kept").touch()
    with pytest.raises(RuntimeError), own_folder(tmp_path / "runs" / "first"):
        raise RuntimeError
    assert [path.name for path in tmp_path.iterdir()] == ["kept"]


def test_a_folder_that_was_there_stays(tmp_path: Path) -> None:
    with own_folder(tmp_path):
        pass
    assert tmp_path.is_dir()


def test_a_run_and_earlier_runs_are_no_obstacle(tmp_path: Path) -> None:
    (tmp_path / "earlier-1").mkdir()
    with own_folder(tmp_path):
        (tmp_path / "records.jsonl").touch()
        (tmp_path / "report.html").touch()
    with own_folder(tmp_path):
        pass


def test_a_folder_with_other_files_is_refused(tmp_path: Path) -> None:
    (tmp_path / "thesis.tex").touch()
    refused = pytest.raises(ConfigError, match=r"no run of slimgrad, such as thesis\.tex")
    with refused, own_folder(tmp_path):
        raise AssertionError


def test_a_file_is_refused(tmp_path: Path) -> None:
    (tmp_path / "out").touch()
    for out in (tmp_path / "out", tmp_path / "out" / "below"):
        with pytest.raises(ConfigError, match="cannot be made a folder"), own_folder(out):
            raise AssertionError


def test_two_runs_cannot_share_a_folder(tmp_path: Path) -> None:
    refused = pytest.raises(ConfigError, match="another slimgrad process")
    with own_folder(tmp_path), refused, own_folder(tmp_path):
        raise AssertionError
    with own_folder(tmp_path):
        pass


def test_where_there_are_no_locks_a_run_goes_ahead(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "fcntl", None)
    with own_folder(tmp_path), own_folder(tmp_path):
        pass


def test_only_rank_0_of_a_launch_holds_the_folder(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert is_main_process()
    monkeypatch.setenv("WORLD_SIZE", "2")
    monkeypatch.setenv("RANK", "0")
    assert is_main_process()
    monkeypatch.setenv("RANK", "1")
    assert not is_main_process()
    with own_folder(tmp_path / "out"):
        assert not (tmp_path / "out").exists()
