"""The harness of the codec benchmarks: named works timed side by side, and figures made of them.

A module benchmarks/codec_GROUP.py has a function ``cases(x)`` that yields what it wants timed on
the flat float32 vector ``x`` and what it wants stated; ``codec.py`` runs it. One case a setting::

    def cases(x):
        out, frame = torch.empty_like(x), encode(x)
        yield Case("rans encode", partial(encode, x), asked=0.8, against="NUQSGD 4 512 quantize")
        yield Size("rans size", bits=8 * len(frame) / len(x), asked=entropy + 0.02)

A figure is a ratio of speeds, that of a case over that of what it is measured against. All cases
run once in every round, each beside the others, so that a disturbance meets all alike.
"""

from __future__ import annotations

import contextlib
import itertools
import json
import os
import platform
import statistics
import time
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from pathlib import Path

import torch

from slimgrad.kernels import backend


@dataclass(frozen=True)
class Case:
    """A piece of work and the speed asked of it.

    Attributes:
        name: of the figure; other cases may be measured against it.
        work: what is timed; allocate and encode before.
        asked: least ratio of speeds to ``against``; None to state the ratio alone.
        against: name of another case; "copy", "read" and "cast" are always there.
        isa: instruction set of the native kernels.
        threads: with more than 1 the wall time counts, else the processor time of the thread.
        share: part of the vector's components the work is done on.
        rounds: rounds it takes part in, for slow work; None for all.
    """

    name: str
    work: Callable[[], object]
    asked: float | None = None
    against: str = "copy"
    isa: str = "auto"
    threads: int = 1
    share: float = 1.0
    rounds: int | None = None


@dataclass(frozen=True)
class Size:
    """A size that is no matter of time: bits a component, at most ``asked``."""

    name: str
    bits: float
    asked: float | None = None


@dataclass
class Timer:
    """Seconds of each named work, one a round, scaled to the whole vector."""

    seconds: dict[str, list[float]] = field(default_factory=dict)

    def run(self, case: Case) -> None:
        """Does the work once and notes its time."""
        clock = time.thread_time if case.threads == 1 else time.perf_counter
        with setting(case):
            start = clock()
            case.work()
            taken = clock() - start
        self.seconds.setdefault(case.name, []).append(taken / case.share)

    def least(self, name: str) -> float:
        """The least time of the rounds."""
        return min(self.seconds[name])

    def ratio(self, name: str, against: str) -> float:
        """How many times faster ``name`` is than ``against``, by the least times."""
        return self.least(against) / self.least(name)

    def median_ratio(self, name: str, against: str) -> float:
        """The same by the median over the rounds in which both ran."""
        pairs = zip(self.seconds[against], self.seconds[name], strict=False)
        return statistics.median(slow / fast for slow, fast in pairs)


@contextlib.contextmanager
def setting(case: Case) -> Iterator[None]:
    """The instruction set and the number of threads of a case."""
    threads = torch.get_num_threads()
    native = backend.use_backend("native", case.isa) if case.isa != "auto" else None
    with native or contextlib.nullcontext():
        if case.threads != threads:
            torch.set_num_threads(case.threads)
        try:
            yield
        finally:
            if case.threads != threads:
                torch.set_num_threads(threads)


def baselines(x: torch.Tensor) -> list[Case]:
    """Copying, reading, and casting the vector."""
    y, half = torch.zeros_like(x), torch.zeros(len(x), dtype=torch.bfloat16)
    return [
        Case("copy", lambda: y.copy_(x)),
        Case("read", lambda: torch.dot(x, x)),
        Case("cast", lambda: half.copy_(x)),
    ]


def measure(cases: Iterable[Case], rounds: int) -> Timer:
    """Times of all cases, interleaved; the first round of each warms up and does not count."""
    timer = Timer()
    todo = list(cases)
    for case in todo:
        with setting(case):
            case.work()
    for number in range(rounds):
        for case in todo:
            if case.rounds is None or number < case.rounds:
                timer.run(case)
    return timer


def figures(x: torch.Tensor, found: Iterable[Case | Size], rounds: int) -> list[dict]:
    """One row for every case and size: what was asked and what was reached."""
    entries = list(found)
    named = {case.name: case for case in baselines(x)}
    for entry in entries:
        if isinstance(entry, Case):
            named[entry.name] = entry
    timer = measure(named.values(), rounds)
    return [
        _speed_row(timer, entry, len(x)) if isinstance(entry, Case) else _size_row(entry)
        for entry in itertools.chain(list(named.values())[:3], entries)
    ]


def _speed_row(timer: Timer, case: Case, n: int) -> dict:
    return {
        "name": case.name,
        "isa": case.isa if case.isa != "auto" else backend.status().isa,
        "threads": case.threads,
        "unit": f"times the speed of {case.against}",
        "asked": case.asked,
        "reached": timer.ratio(case.name, case.against),
        "median": timer.median_ratio(case.name, case.against),
        "input_gigabytes_per_second": 4 * n / timer.least(case.name) / 1e9,
        "met": None if case.asked is None else timer.ratio(case.name, case.against) >= case.asked,
    }


def _size_row(size: Size) -> dict:
    return {
        "name": size.name,
        "unit": "bits a component, at most",
        "asked": size.asked,
        "reached": size.bits,
        "met": None if size.asked is None else size.bits <= size.asked,
    }


def show(rows: list[dict]) -> None:
    """The rows as a table."""
    print(f"{'':<44} {'isa':<8} {'GB/s':>6} {'asked':>7} {'reached':>8} {'median':>7}")
    for row in rows:
        speed = row.get("input_gigabytes_per_second")
        missed = "MISSED " if row["met"] is False else ""
        print(
            f"{row['name']:<44} {row.get('isa', ''):<8} {_number(speed, 1):>6} "
            f"{_number(row['asked'], 2):>7} {row['reached']:>8.2f} "
            f"{_number(row.get('median'), 2):>7}  {missed}{row['unit']}"
        )


def _number(value: float | None, digits: int) -> str:
    return "" if value is None else f"{value:.{digits}f}"


def versions() -> dict[str, str]:
    """Versions and hardware the rows belong to."""
    return {
        "torch": torch.__version__,
        "python": platform.python_version(),
        "machine": platform.machine(),
        "processor": _processor(),
        "cores": str(os.cpu_count()),
        "capability": torch.backends.cpu.get_cpu_capability(),
        "kernels": backend.status().isa,
    }


def _processor() -> str:
    about = Path("/proc/cpuinfo")
    lines = about.read_text().splitlines() if about.exists() else []
    return next((line.split(":")[1].strip() for line in lines if "model name" in line), "")


def write_json(path: Path, rows: list[dict]) -> None:
    """The rows with what they were measured on."""
    path.write_text(json.dumps({"about": versions(), "rows": rows}, indent=1) + "\n")


def gradient(path: Path | None, n: int, part: str = "") -> torch.Tensor:
    """A real gradient, or a Gaussian vector without one; cut or repeated to ``n`` components.

    Args:
        path: a mapping of tensors saved by benchmarks/real_gradient.py, or None.
        n: components.
        part: takes only tensors with this in their name.
    """
    if path is None:
        return torch.randn(n, generator=torch.Generator().manual_seed(0))
    loaded = torch.load(path, map_location="cpu", weights_only=True)
    parts = [t.flatten().float() for name, t in loaded.items() if part in name]
    flat = torch.cat(parts)
    return flat.repeat(-(-n // len(flat)))[:n].clone()
