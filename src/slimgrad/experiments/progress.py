"""Shows how a comparison is getting on, by following its records while the workers write them.

On a terminal there is a live display; anywhere else, one plain line for each finished epoch and
run, so that logs stay readable.
"""

from __future__ import annotations

import os
import sys
import threading
import time
from abc import ABC, abstractmethod
from collections.abc import Callable
from pathlib import Path
from types import TracebackType

from rich.console import Console, Group
from rich.live import Live
from rich.progress_bar import ProgressBar
from rich.table import Table
from rich.text import Text

from slimgrad.core.errors import DataError
from slimgrad.experiments.records import Record, read_records
from slimgrad.experiments.runs import RunKey, finite
from slimgrad.experiments.tail import RecordTail

POLL_SECONDS = 0.2
# A log that stands still for longer looks like a program that hangs.
SILENT_SECONDS = 20.0


class ProgressState:
    """How far a comparison is, from the records seen so far.

    Attributes:
        planned: the runs asked for; empty before the session record.
        epochs: epochs a run; 0 when the records do not say.
        current: the last progress record of the run at work; None between runs.
    """

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self.planned: set[RunKey] = set()
        self.epochs = 0
        self._results: dict[RunKey, Record] = {}
        self.current: Record | None = None
        self._clock = clock
        self._started: tuple[float, float] | None = None

    def update(self, record: Record) -> None:
        """Take one record into account."""
        kind = record["kind"]
        if kind == "session":
            self.planned = {(m, seed) for m in record["methods"] for seed in record["seeds"]}
            config = record.get("config")
            epochs = config.get("epochs") if isinstance(config, dict) else None
            self.epochs = epochs if isinstance(epochs, int) else 0
            self.current = None
        elif kind == "progress":
            self.current = record
        elif kind == "result":
            self._results[record["method"], record["seed"]] = record
            self.current = None

    @property
    def finished(self) -> dict[RunKey, Record]:
        """Results of the planned runs."""
        return {key: found for key, found in self._results.items() if key in self.planned}

    def begin(self) -> None:
        """Measure the pace from here: what was done before costs no time now."""
        self._started = (self._clock(), self.fraction)

    @property
    def run_fraction(self) -> float:
        """Share of the current run that is done, in [0, 1]."""
        if self.current is None or not self.current["steps"]:
            return 0.0
        return min(1.0, self.current["step"] / self.current["steps"])

    @property
    def fraction(self) -> float:
        """Share of the whole comparison that is done, in [0, 1]; runs count alike."""
        if not self.planned:
            return 0.0
        return min(1.0, (len(self.finished) + self.run_fraction) / len(self.planned))

    @property
    def seconds_left(self) -> float | None:
        """Expected time to the end at the pace so far; None while there is no pace to go by."""
        if self._started is None:
            return None
        since, before = self._started
        gained = self.fraction - before
        if gained <= 0:
            return None
        return (self._clock() - since) * (1 - self.fraction) / gained


def duration(seconds: float) -> str:
    """A time in words.

    >>> duration(4.2), duration(75), duration(7260)
    ('4 s', '1 min 15 s', '2 h 1 min')
    """
    whole = round(seconds)
    if whole < 60:
        return f"{whole} s"
    if whole < 3600:
        return f"{whole // 60} min {whole % 60} s"
    return f"{whole // 3600} h {whole % 3600 // 60} min"


def session_line(record: Record, state: ProgressState) -> str:
    """One line for the start: how much there is to do."""
    runs = len(state.planned) - len(state.finished)
    if not runs:
        return "every run is finished already"
    config = record.get("config")
    workers = config.get("workers") if isinstance(config, dict) else None
    crew = f" with {workers} workers" if isinstance(workers, int) and workers > 1 else ""
    return f"training: {runs} run{'' if runs == 1 else 's'}{crew}"


def step_line(record: Record) -> str:
    """One line for a step, when an epoch takes long."""
    return (
        f"{record['method']}, seed {record['seed']}: step {record['step']} of {record['steps']}, "
        f"training loss {_loss(record.get('loss'))}"
    )


def epoch_line(record: Record, state: ProgressState) -> str:
    """One line for a finished epoch."""
    of = f" of {state.epochs}" if state.epochs else ""
    return (
        f"{record['method']}, seed {record['seed']}: epoch {record['epoch']}{of}, "
        f"test accuracy {_percent(record.get('test_accuracy'))}, "
        f"training loss {_loss(record.get('train_loss'))}"
    )


def result_line(record: Record, state: ProgressState) -> str:
    """One line for a finished run."""
    step, total = finite(record.get("seconds_per_step")), finite(record.get("total_seconds"))
    parts = [f"accuracy {_percent(record.get('final_accuracy'))}"]
    if step is not None:
        parts.append(f"{step * 1000:.1f} ms a step")
    if total is not None:
        parts.append(f"{total:.1f} s")
    count = f"[{len(state.finished)}/{len(state.planned)}] " if state.planned else ""
    return f"{count}{record['method']}, seed {record['seed']}: finished: {', '.join(parts)}"


class Display(ABC):
    """Where progress is shown."""

    @abstractmethod
    def show(self, record: Record, state: ProgressState) -> None:
        """A new record has come in; ``state`` already counts it."""

    @abstractmethod
    def refresh(self, state: ProgressState) -> None:
        """Some time has passed."""

    @abstractmethod
    def close(self) -> None:
        """Leave the terminal as it was found."""


class PlainDisplay(Display):
    """One line for each finished epoch and run, and a sign of life in between."""

    def __init__(self, console: Console, clock: Callable[[], float] = time.monotonic) -> None:
        self._console = console
        self._clock = clock
        self._printed = clock()

    def show(self, record: Record, state: ProgressState) -> None:
        """Print the line of an epoch or a result; of a step, when none was printed for long."""
        if record["kind"] == "session":
            self._print(session_line(record, state))
        elif record["kind"] == "progress":
            if self._clock() - self._printed >= SILENT_SECONDS:
                self._print(step_line(record))
        elif record["kind"] == "epoch":
            self._print(epoch_line(record, state))
        elif record["kind"] == "result":
            left = state.seconds_left
            rest = f" (about {duration(left)} left)" if left else ""
            self._print(result_line(record, state) + rest)

    def refresh(self, state: ProgressState) -> None:
        """Print nothing: a log has no moving parts."""

    def close(self) -> None:
        """Nothing to undo."""

    def _print(self, line: str) -> None:
        self._printed = self._clock()
        self._console.file.write(line + "\n")
        self._console.file.flush()


class LiveDisplay(Display):
    """Two bars that move, below the lines of the runs that are finished."""

    def __init__(self, console: Console) -> None:
        self._live = Live(console=console, auto_refresh=False, transient=True)
        self._live.start()

    def show(self, record: Record, state: ProgressState) -> None:
        """Print the line of a result above the bars."""
        if record["kind"] == "result":
            self._live.console.print(Text(result_line(record, state)))

    def refresh(self, state: ProgressState) -> None:
        """Redraw the bars."""
        self._live.update(live_view(state, self._live.console.width), refresh=True)

    def close(self) -> None:
        """Remove the bars and show the cursor again."""
        self._live.stop()


def live_view(state: ProgressState, width: int) -> Group:
    """The moving part of the live display, ``width`` columns wide."""
    if not state.planned:
        return Group(Text("starting ...", style="dim"))
    bar_width = max(10, min(40, width - 44))
    bars = Table.grid(padding=(0, 1))
    left = state.seconds_left
    rest = f"about {duration(left)} left" if left is not None else "starting"
    bars.add_row(
        Text("all runs"),
        ProgressBar(1.0, state.fraction, width=bar_width),
        Text(f"{len(state.finished)}/{len(state.planned)}"),
        Text(rest, style="cyan"),
    )
    if state.current is None:
        return Group(bars)
    current = state.current
    bars.add_row(
        Text("this run"),
        ProgressBar(1.0, state.run_fraction, width=bar_width),
        Text(f"{current['step']}/{current['steps']}"),
        Text(f"loss {_loss(current.get('loss'))}"),
    )
    name = Text(f"{current['method']}, seed {current['seed']}", style="bold", overflow="ellipsis")
    return Group(name, bars)


class FollowProgress:
    """Context manager that shows the progress of the comparison written to ``path``.

    A thread of this process reads the records; training is never touched, and an error in the
    display ends the display alone. On leaving, also by an exception, the last records are shown
    and the terminal is restored.

    Args:
        path: the records file; it may not exist yet.
        console: where to show it; a terminal gets the live display.
        resume: whether the new session adds to a file that is there; else that file is ignored.

    Attributes:
        problem: why the display ended early; "" while all is well.
    """

    def __init__(self, path: Path, console: Console, *, resume: bool = False) -> None:
        self.problem = ""
        self._tail = RecordTail(path, skip_present=not resume)
        self._state = ProgressState()
        self._sessions_before = _count_sessions(path) if resume else 0
        self._sessions = 0
        self._warned: set[str] = set()
        self._console = console
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._follow, name="slimgrad-progress", daemon=True)

    def __enter__(self) -> FollowProgress:
        """Start to follow."""
        self._thread.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        """Show what is left, and stop."""
        self._stop.set()
        self._thread.join()
        if self.problem:
            line = f"slimgrad: the progress display ended early: {self.problem}"
            self._console.print(Text(line))

    def _follow(self) -> None:
        moving = self._console.is_terminal and not self._console.is_dumb_terminal
        display = (LiveDisplay if moving else PlainDisplay)(self._console)
        try:
            last_round = False
            while not last_round:
                last_round = self._stop.wait(POLL_SECONDS)
                self._take(display)
                display.refresh(self._state)
        except Exception as error:  # whatever ends the display must not end the training
            self.problem = str(error) or type(error).__name__
        finally:
            display.close()

    def _take(self, display: Display) -> None:
        """Count the new records, and show those of this session."""
        records, replaced = self._tail.poll()
        if replaced:
            self._state, self._sessions = ProgressState(), 0
        for record in records:
            self._state.update(record)
            if record["kind"] == "session":
                self._sessions += 1
                self._state.begin()
            if self._sessions > self._sessions_before:
                self._warn(record)
                display.show(record, self._state)

    def _warn(self, record: Record) -> None:
        """Pass on what another process warned of, once a method; ours has shown its own."""
        if record["kind"] != "warning" or record.get("process") == os.getpid():
            return
        text = f"{record['method']}: {record['text']}"
        if text not in self._warned:
            self._warned.add(text)
            print(f"slimgrad: warning: {' '.join(text.split())}", file=sys.stderr)


def _count_sessions(path: Path) -> int:
    try:
        return sum(record["kind"] == "session" for record in read_records(path))
    except DataError:
        return 0  # the command that resumes says what is wrong with the file


def _percent(value: object) -> str:
    number = finite(value)
    return "unknown" if number is None else f"{number * 100:.2f} %"


def _loss(value: object) -> str:
    number = finite(value)
    return "not finite" if number is None else f"{number:.4f}"
