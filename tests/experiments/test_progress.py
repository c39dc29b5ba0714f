from __future__ import annotations

import io
import json
import os
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
import sample_records as samples
from rich.console import Console

from slimgrad.experiments.progress import (
    Display,
    FollowProgress,
    PlainDisplay,
    ProgressState,
    live_view,
    session_line,
)


class Clock:
    def __init__(self) -> None:
        self.now = 0.0

    def __call__(self) -> float:
        return self.now


def _append(path: Path, records: list[dict[str, Any]]) -> None:
    with path.open("a") as file:
        file.writelines(json.dumps(record) + "\n" for record in records)


def _wait_until(holds: Callable[[], bool]) -> None:
    deadline = time.monotonic() + 20
    while not holds():
        assert time.monotonic() < deadline
        time.sleep(0.02)


@pytest.fixture
def written() -> io.StringIO:
    return io.StringIO()


@pytest.fixture
def plain(written: io.StringIO) -> Console:
    return Console(file=written, width=200)


@pytest.fixture(autouse=True)
def _no_thread_is_left() -> Iterator[None]:
    yield
    assert not [t for t in threading.enumerate() if t.name == "slimgrad-progress"]


def test_time_left_follows_the_pace() -> None:
    clock = Clock()
    state = ProgressState(clock)
    state.update(samples.session(("exact", "topone"), (1,)))
    state.begin()
    assert (state.fraction, state.seconds_left) == (0.0, None)
    clock.now = 30.0
    state.update({"kind": "progress", "method": "exact", "seed": 1, "step": 50, "steps": 100})
    assert state.fraction == 0.25
    assert state.seconds_left == pytest.approx(90.0)
    clock.now = 50.0
    state.update({"kind": "result", "method": "exact", "seed": 1})
    assert state.fraction == 0.5
    assert state.seconds_left == pytest.approx(50.0)


def test_what_was_done_before_a_resume_sets_no_pace() -> None:
    clock = Clock()
    state = ProgressState(clock)
    state.update(samples.session(("exact", "topone"), (1,)))
    state.update({"kind": "result", "method": "exact", "seed": 1})
    state.begin()
    clock.now = 10.0
    assert state.seconds_left is None
    state.update({"kind": "progress", "method": "topone", "seed": 1, "step": 1, "steps": 2})
    assert state.seconds_left == pytest.approx(10.0)


def test_results_nobody_asked_for_do_not_count() -> None:
    state = ProgressState()
    state.update({"kind": "result", "method": "gone", "seed": 9})
    state.update(samples.session(("exact",), (1,)))
    assert state.fraction == 0.0


def test_a_run_without_steps_has_no_share() -> None:
    state = ProgressState()
    state.update({"kind": "progress", "method": "exact", "seed": 1, "step": 0, "steps": 0})
    assert (state.run_fraction, state.fraction) == (0.0, 0.0)


def test_plain_lines_one_for_each_epoch_and_run(
    tmp_path: Path, plain: Console, written: io.StringIO
) -> None:
    path = tmp_path / "records.jsonl"
    with FollowProgress(path, plain) as progress:
        _append(path, samples.records(("exact", "topone"), (1,)))
    assert progress.problem == ""
    lines = written.getvalue().splitlines()
    assert len(lines) == 13
    assert lines[0].startswith("training: 2 runs")
    assert lines[1].startswith("exact, seed 1: epoch 1 of 5, test accuracy 79.")
    assert lines[6].startswith("[1/2] exact, seed 1: finished: accuracy 97.")
    assert lines[6].endswith("left)")
    assert lines[-1].startswith("[2/2] topone, seed 1: finished")
    assert "\x1b" not in written.getvalue()


def test_lines_come_while_the_run_goes_on(
    tmp_path: Path, plain: Console, written: io.StringIO
) -> None:
    path = tmp_path / "records.jsonl"
    records = samples.records(("exact",), (1,))
    text = "".join(json.dumps(record) + "\n" for record in records)
    with FollowProgress(path, plain):
        with path.open("w") as file:
            file.write(text[: len(text) // 2])
            file.flush()
            _wait_until(lambda: "epoch 2" in written.getvalue())
            file.write(text[len(text) // 2 :])
        _wait_until(lambda: "finished" in written.getvalue())
    assert written.getvalue().count("epoch 3") == 1


def test_the_file_of_an_earlier_session_is_ignored(
    tmp_path: Path, plain: Console, written: io.StringIO
) -> None:
    path = samples.write(tmp_path / "records.jsonl", samples.records(("exact",), (1, 2)))
    with FollowProgress(path, plain):
        path.rename(tmp_path / "earlier.jsonl")
        _append(path, samples.records(("topone",), (7,)))
    assert "exact" not in written.getvalue()
    assert "[1/1] topone, seed 7: finished" in written.getvalue()


def test_a_resumed_session_shows_only_what_is_new(
    tmp_path: Path, plain: Console, written: io.StringIO
) -> None:
    old = samples.records(("exact", "topone"), (1,))[:-1]
    path = samples.write(tmp_path / "records.jsonl", old)
    with FollowProgress(path, plain, resume=True):
        rewritten = samples.write(tmp_path / "new.jsonl", old)
        rewritten.replace(path)
        _append(path, [samples.session(("exact", "topone"), (1,))])
        _append(path, samples.run_records("topone", 1)[-1:])
    lines = written.getvalue().splitlines()
    assert len(lines) == 2
    assert lines[0] == "training: 1 run with 2 workers"
    assert lines[1].startswith("[2/2] topone, seed 1: finished")


def test_a_broken_record_ends_the_display_and_nothing_else(
    tmp_path: Path, plain: Console, written: io.StringIO
) -> None:
    path = tmp_path / "records.jsonl"
    with FollowProgress(path, plain) as progress:
        path.write_text("{broken\n")
    assert "not a JSON record" in progress.problem
    assert "the progress display ended early" in written.getvalue()


def test_a_file_that_cannot_be_resumed_is_left_to_others(tmp_path: Path, plain: Console) -> None:
    path = tmp_path / "records.jsonl"
    path.write_text("{broken\n")
    with FollowProgress(path, plain, resume=True) as progress:
        pass
    assert progress.problem


def test_an_error_in_training_is_passed_on(
    tmp_path: Path, plain: Console, written: io.StringIO
) -> None:
    path = tmp_path / "records.jsonl"

    def fail() -> None:
        _append(path, samples.records(("exact",), (1,))[:4])
        raise RuntimeError("worker")

    with pytest.raises(RuntimeError, match="worker"), FollowProgress(path, plain):
        fail()
    assert "epoch 1" in written.getvalue()


def test_on_a_terminal_bars_move_and_the_cursor_comes_back(tmp_path: Path) -> None:
    path, screen = tmp_path / "records.jsonl", io.StringIO()
    terminal = Console(file=screen, width=100, force_terminal=True, _environ={"TERM": "xterm"})
    records = samples.records(("exact", "topone"), (1,))
    with FollowProgress(path, terminal):
        _append(path, records[:9])
        _wait_until(lambda: "this run" in screen.getvalue())
        _append(path, records[9:])
    text = screen.getvalue()
    assert "all runs" in text
    assert "[1/2] exact, seed 1: finished" in text
    assert text.count("\x1b[?25l") == text.count("\x1b[?25h") == 1


def test_a_dumb_terminal_gets_plain_lines(tmp_path: Path, written: io.StringIO) -> None:
    path = tmp_path / "records.jsonl"
    terminal = Console(file=written, force_terminal=True, _environ={"TERM": "dumb"})
    with FollowProgress(path, terminal):
        _append(path, samples.records(("exact",), (1,)))
    assert "all runs" not in written.getvalue()
    assert "finished" in written.getvalue()


@pytest.mark.parametrize("width", [40, 80, 200])
def test_the_live_view_names_method_seed_loss_and_time_left(width: int) -> None:
    clock = Clock()
    state = ProgressState(clock)
    screen = Console(file=io.StringIO(), width=width)
    screen.print(live_view(state, width))
    state.update(samples.session(("exact", "topone"), (1, 2)))
    state.begin()
    clock.now = 60.0
    state.update(
        {"kind": "progress", "method": "topone", "seed": 2, "step": 5, "steps": 10, "loss": 0.25}
    )
    screen.print(live_view(state, width))
    state.update({"kind": "progress", "method": "topone", "seed": 2, "step": 5, "steps": 10})
    screen.print(live_view(state, width))
    assert isinstance(screen.file, io.StringIO)
    text = screen.file.getvalue()
    for fact in ("starting ...", "topone, seed 2", "0/4", "5/10", "loss 0.2500"):
        assert fact in text
    assert "loss not finite" in text
    assert "7 min" in text


def test_odd_results_have_a_line(plain: Console, written: io.StringIO) -> None:
    display: Display = PlainDisplay(plain)
    state = ProgressState()
    display.show({"kind": "result", "method": "[red]", "seed": 1, "final_accuracy": None}, state)
    display.close()
    assert written.getvalue() == "[red], seed 1: finished: accuracy unknown\n"


def test_warnings_of_workers_are_passed_on_once(
    tmp_path: Path, plain: Console, written: io.StringIO, capsys: pytest.CaptureFixture[str]
) -> None:
    def warning(method: str, seed: int, process: int) -> dict[str, Any]:
        text = "nothing\nis compressed"
        return {
            "kind": "warning", "method": method, "seed": seed, "text": text, "process": process,
        }  # fmt: skip

    path = tmp_path / "records.jsonl"
    with FollowProgress(path, plain):
        _append(path, [samples.session(("exact", "a", "b"), (1, 2))])
        _append(path, [warning("a", 1, 0), warning("a", 2, 0), warning("b", 1, os.getpid())])
    assert capsys.readouterr().err == "slimgrad: warning: a: nothing is compressed\n"
    assert written.getvalue() == "training: 6 runs with 2 workers\n"


def test_a_long_epoch_gives_signs_of_life(plain: Console, written: io.StringIO) -> None:
    now = [0.0]
    display, state = PlainDisplay(plain, lambda: now[0]), ProgressState()
    step = {"kind": "progress", "method": "exact", "seed": 1, "steps": 90, "loss": 1.5}
    for second in (5.0, 21.0, 30.0, 42.0):
        now[0] = second
        display.show({**step, "step": int(second)}, state)
    assert written.getvalue().splitlines() == [
        "exact, seed 1: step 21 of 90, training loss 1.5000",
        "exact, seed 1: step 42 of 90, training loss 1.5000",
    ]


def test_the_first_line_says_how_much_there_is_to_do() -> None:
    state = ProgressState()
    session = {"kind": "session", "methods": ["a"], "seeds": [0], "config": {"workers": 2}}
    state.update(session)
    assert session_line(session, state) == "training: 1 run with 2 workers"
    state.update({"kind": "result", "method": "a", "seed": 0})
    assert session_line(session, state) == "every run is finished already"
