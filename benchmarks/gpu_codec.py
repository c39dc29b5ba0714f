"""Triton kernels against copying memory on a GPU; says "not measured" where there is none.

python benchmarks/gpu_codec.py --json rows.json
"""

from __future__ import annotations

import argparse
import importlib.util
import statistics
import sys
from collections.abc import Callable
from pathlib import Path

import timing
import torch

LEVELS = {
    "NUQSGD": ("exponential", "l2", [0.0, *(2.0 ** (j - 7) for j in range(1, 8))]),
    "QSGDinf": ("uniform", "linf", [j / 7 for j in range(8)]),
}


def why_not() -> str:
    """What is missing to measure anything; "" when nothing is."""
    if not torch.cuda.is_available():
        return "torch sees no CUDA device here"
    if importlib.util.find_spec("triton") is None:
        return "triton is not installed: pip install slimgrad[gpu]"
    return ""


def works(x: torch.Tensor) -> dict[str, Callable[[], object]]:
    """What is timed, by name; the first is what the others are measured against."""
    from slimgrad.kernels.triton import dequantize, packing, quantize, topk

    y, total = torch.empty_like(x), torch.zeros_like(x)
    todo: dict[str, Callable[[], object]] = {"copy": lambda: y.copy_(x)}
    for name, (grid, norm, levels) in LEVELS.items():
        table = torch.tensor(levels, device=x.device)
        layout = {"levels": table, "bits": 4, "bucket_size": 512}
        scales, packed = quantize.quantize(x, grid=grid, norm=norm, key=1, **layout)

        def rounding(grid: str = grid, norm: str = norm, layout: dict = layout) -> object:
            return quantize.quantize(x, grid=grid, norm=norm, key=1, **layout)

        def adding(
            scales: torch.Tensor = scales, packed: torch.Tensor = packed, layout: dict = layout
        ) -> object:
            return dequantize.dequantize_add_(total, packed, scales, **layout)

        todo[f"{name} 4 512 quantize"] = rounding
        todo[f"{name} 4 512 unpack + add"] = adding
    symbols = torch.randint(0, 16, x.shape, dtype=torch.uint8, device=x.device)
    todo["pack 4 bits"] = lambda: packing.pack_symbols(symbols, 4)
    todo["top-k of 1 %"] = lambda: topk.topk_places(x, len(x) // 100)
    todo["top-k of 1 %, torch"] = lambda: torch.topk(x.abs(), len(x) // 100)
    return todo


def seconds(work: Callable[[], object]) -> float:
    """Of the device, from an event before to one after."""
    start, stop = (torch.cuda.Event(enable_timing=True) for _ in range(2))
    start.record()
    work()
    stop.record()
    torch.cuda.synchronize()
    return start.elapsed_time(stop) / 1e3


def measured(n: int, rounds: int) -> list[dict]:
    """One row for every work: the median of ``rounds`` interleaved runs after a first one."""
    x = torch.randn(n, generator=torch.Generator().manual_seed(0)).cuda()
    todo = works(x)
    taken: dict[str, list[float]] = {name: [] for name in todo}
    for number in range(rounds + 1):
        for name, work in todo.items():
            spent = seconds(work)
            if number > 0:
                taken[name].append(spent)
    copy = statistics.median(taken["copy"])
    return [
        {
            "name": name,
            "device": torch.cuda.get_device_name(),
            "unit": "times the speed of copy",
            "reached": copy / statistics.median(times),
            "input_gigabytes_per_second": 4 * n / statistics.median(times) / 1e9,
        }
        for name, times in taken.items()
    ]


def main() -> int:
    parser = argparse.ArgumentParser(description="Triton kernels on a GPU.")
    parser.add_argument("--n", type=int, default=25_000_000, help="components (default 25 million)")
    parser.add_argument("--rounds", type=int, default=20, help="rounds (default 20)")
    parser.add_argument("--json", type=Path, help="write the rows, versions and hardware there")
    options = parser.parse_args()
    missing = why_not()
    if missing:
        print(f"not measured: {missing}")
        rows = [{"name": "Triton kernels", "reached": None, "not measured": missing}]
    else:
        rows = measured(options.n, options.rounds)
        for row in rows:
            speed = row["input_gigabytes_per_second"]
            print(f"{row['name']:<32} {speed:8.1f} GB/s {row['reached']:6.2f} {row['unit']}")
    if options.json is not None:
        timing.write_json(options.json, rows)
    return 0


if __name__ == "__main__":
    sys.exit(main())
