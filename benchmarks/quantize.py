"""How fast is quantize + pack, and unpack + add, beside copying the vector and beside plain torch?

One thread, CPU time, all cases interleaved in every round, the least of the rounds; the vectors are
far larger than the caches. A ratio above 1 means faster than ``y.copy_(x)`` on the same vector.
Plain torch is timed apart, on the first 4 million components, the least of three runs.

    python benchmarks/quantize.py                        # a Gaussian vector of 25 million
    python benchmarks/quantize.py --gradient g.pt --json rows.json
"""

from __future__ import annotations

import argparse
import json
import platform
import sys
import time
from collections.abc import Callable
from dataclasses import asdict, dataclass
from functools import partial
from pathlib import Path

import torch

from slimgrad import kernels
from slimgrad.kernels import backend


@dataclass(frozen=True)
class Case:
    """One setting of the quantizer."""

    name: str
    grid: str
    norm: str
    bits: int
    bucket_size: int

    def layout(self) -> dict:
        """The settings both directions need."""
        m = 2 ** (self.bits - 1) - 1
        levels = {
            "uniform": tuple(j / m for j in range(m + 1)),
            "exponential": (0.0, *(2.0 ** (j - m) for j in range(1, m + 1))),
            "table": tuple((j / m) ** 1.7 for j in range(m + 1)),
        }[self.grid]
        return {"levels": levels, "bits": self.bits, "bucket_size": self.bucket_size}

    def quantize(self, x: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        """Scales and packed symbols of ``x``, on the calling thread."""
        return kernels.quantize(
            x, grid=self.grid, norm=self.norm, key=1, serial=True, **self.layout()
        )

    def add(self, out: torch.Tensor, scales: torch.Tensor, packed: torch.Tensor) -> torch.Tensor:
        """Adds the packed vector to ``out``, on the calling thread."""
        return kernels.dequantize_add_(out, packed, scales, serial=True, **self.layout())


MAIN = [
    Case("NUQSGD", "exponential", "l2", 4, 512),
    Case("NUQSGD", "exponential", "l2", 4, 8192),
    Case("QSGDinf", "uniform", "linf", 4, 512),
    Case("QSGDinf", "uniform", "linf", 4, 8192),
]
MORE = [
    Case("NUQSGD", "exponential", "l2", 2, 512),
    Case("NUQSGD", "exponential", "l2", 3, 512),
    Case("QSGDinf", "uniform", "linf", 3, 512),
    Case("QSGDinf", "uniform", "linf", 8, 512),
    Case("table", "table", "l2", 4, 512),
    Case("table", "table", "l2", 8, 512),
    Case("NUQSGD", "exponential", "l2", 4, 64),
    Case("NUQSGD", "exponential", "l2", 4, 100),
]


class Timer:
    """The least CPU time of each named piece of work over the rounds."""

    def __init__(self) -> None:
        self.least: dict[tuple, float] = {}

    def run(self, name: tuple, work: Callable[[], object]) -> None:
        """Does the work once and keeps its time if it is the least so far."""
        start = time.thread_time()
        work()
        taken = time.thread_time() - start
        self.least[name] = min(taken, self.least.get(name, taken))


def measure(x: torch.Tensor, cases: list[Case], isas: list[str], rounds: int) -> Timer:
    timer = Timer()
    y = torch.zeros_like(x)
    for _ in range(rounds):
        timer.run(("copy",), partial(y.copy_, x))
        for case in cases:
            scales, packed = case.quantize(x)
            for isa in isas:
                with backend.use_backend("native", isa):
                    timer.run((case, isa, "quantize"), partial(case.quantize, x))
                    timer.run((case, isa, "add"), partial(case.add, y, scales, packed))
    return timer


def measure_reference(x: torch.Tensor, case: Case) -> dict[str, float]:
    """CPU seconds a component of the plain-torch reference, on a part of the vector."""
    part = x[: 1 << 22]
    timer = Timer()
    with backend.use_backend("reference"):
        scales, packed = case.quantize(part)
        out = torch.zeros_like(part)
        for _ in range(3):
            timer.run(("quantize",), partial(case.quantize, part))
            timer.run(("add",), partial(case.add, out, scales, packed))
    return {name[0]: seconds / len(part) for name, seconds in timer.least.items()}


def rows_of(x: torch.Tensor, source: str, cases: list[Case], isas: list[str], rounds: int) -> list:
    timer = measure(x, cases, isas, rounds)
    copy = timer.least[("copy",)]
    rows = []
    for case in cases:
        slow = measure_reference(x, case)
        for isa in isas:
            for work in ("quantize", "add"):
                seconds = timer.least[(case, isa, work)]
                rows.append(
                    {
                        "vector": source,
                        "n": len(x),
                        **asdict(case),
                        "isa": isa,
                        "work": "quantize + pack" if work == "quantize" else "unpack + add",
                        "times_copy": copy / seconds,
                        "times_reference": slow[work] * len(x) / seconds,
                        "input_gigabytes_per_second": 4 * len(x) / seconds / 1e9,
                        "copy_gigabytes_per_second": 4 * len(x) / copy / 1e9,
                    }
                )
    return rows


def show(rows: list[dict]) -> None:
    print(f"vector: {rows[0]['vector']}, {rows[0]['n']} components; one thread, CPU time")
    print(f"y.copy_(x): {rows[0]['copy_gigabytes_per_second']:.1f} GB/s of input")
    heading = "method      bits bucket  isa       work              GB/s  x copy  x reference"
    print(heading)
    for row in rows:
        print(
            f"{row['name']:<11} {row['bits']:>4} {row['bucket_size']:>6}  {row['isa']:<9} "
            f"{row['work']:<16} {row['input_gigabytes_per_second']:>5.1f} "
            f"{row['times_copy']:>7.2f} {row['times_reference']:>12.0f}"
        )


def flat_gradient(path: Path) -> torch.Tensor:
    """A tensor, or a list or mapping of tensors, saved by torch.save, as one float32 vector."""
    loaded = torch.load(path, map_location="cpu", weights_only=True)
    if isinstance(loaded, dict):
        loaded = list(loaded.values())
    parts = loaded if isinstance(loaded, list | tuple) else [loaded]
    return torch.cat([part.detach().flatten().float() for part in parts])


def main() -> int:
    parser = argparse.ArgumentParser(description="Ratios of the quantize kernels to a copy.")
    parser.add_argument("--n", type=int, default=25_000_000, help="components (default 25 million)")
    parser.add_argument("--rounds", type=int, default=5, help="rounds to take the least of")
    parser.add_argument("--gradient", type=Path, help="a real gradient saved by torch.save")
    parser.add_argument("--more", action="store_true", help="more bits, grids and bucket sizes")
    parser.add_argument("--json", type=Path, help="write the rows, versions and hardware there")
    options = parser.parse_args()
    isas = backend.usable_isas()[::-1]
    if not isas:
        print("the C++ kernels were not built: nothing to compare with", file=sys.stderr)
        return 2
    torch.set_num_threads(1)
    vectors = {"gaussian": torch.randn(options.n, generator=torch.Generator().manual_seed(0))}
    if options.gradient is not None:
        vectors[options.gradient.name] = flat_gradient(options.gradient)
    cases = MAIN + (MORE if options.more else [])
    rows = []
    for source, x in vectors.items():
        found = rows_of(x, source, cases, isas, options.rounds)
        show(found)
        rows += found
    if options.json is not None:
        about = {"torch": torch.__version__, "python": platform.python_version()}
        hardware = {
            "machine": platform.machine(),
            "capability": torch.backends.cpu.get_cpu_capability(),
        }
        options.json.write_text(
            json.dumps({"versions": about, "hardware": hardware, "rows": rows}, indent=1)
        )
    return 0


if __name__ == "__main__":
    sys.exit(main())
