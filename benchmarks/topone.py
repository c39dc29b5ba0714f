"""Is the top-1 filter gradient faster than torch's exact one, and by how much, layer by layer?

Every row is the time of one call divided by the time of torch's exact weight gradient in the
better of both memory layouts: one thread, CPU time, both interleaved, minimum of all rounds.
"""

from __future__ import annotations

import argparse
import json
import platform
import sys
import time
from collections.abc import Callable
from dataclasses import asdict, dataclass
from typing import Any

import torch

from slimgrad.kernels import backend, topone_weight_grad

LAYOUTS = {"contiguous": torch.contiguous_format, "channels_last": torch.channels_last}


@dataclass(frozen=True)
class Layer:
    """A convolution of C channels to K filters on H x H inputs, padded to keep the size."""

    channels: int
    filters: int
    size: int
    kernel: int = 3
    stride: int = 1
    count: int = 1

    @property
    def name(self) -> str:
        """Short name for the table."""
        stride = f" s{self.stride}" if self.stride > 1 else ""
        return f"{self.channels}->{self.filters}@{self.size} k{self.kernel}{stride}"


NETWORKS = {
    "vgg19": [
        Layer(3, 64, 32),
        Layer(64, 64, 32),
        Layer(64, 128, 16),
        Layer(128, 128, 16),
        Layer(128, 256, 8),
        Layer(256, 256, 8, count=3),
        Layer(256, 512, 4),
        Layer(512, 512, 4, count=3),
        Layer(512, 512, 2, count=4),
    ],
    "resnet20": [
        Layer(3, 16, 32),
        Layer(16, 16, 32, count=6),
        Layer(16, 32, 32, stride=2),
        Layer(32, 32, 16, count=5),
        Layer(32, 64, 16, stride=2),
        Layer(64, 64, 8, count=5),
    ],
    "cnn2": [Layer(3, 64, 24, kernel=5), Layer(64, 64, 12, kernel=5)],
}


def contenders(layer: Layer, batch: int) -> dict[str, Callable[[], object]]:
    """Exact and top-1 weight gradient of one layer in both layouts."""
    generator = torch.Generator().manual_seed(0)
    pad, out = layer.kernel // 2, layer.size // layer.stride
    x = torch.randn((batch, layer.channels, layer.size, layer.size), generator=generator).relu_()
    grad_out = torch.randn((batch, layer.filters, out, out), generator=generator)
    weight = torch.empty(layer.filters, layer.channels, layer.kernel, layer.kernel)
    found: dict[str, Callable[[], object]] = {}
    for name, layout in LAYOUTS.items():
        there = [t.contiguous(memory_format=layout) for t in (grad_out, x, weight)]

        def exact(there: list[torch.Tensor] = there) -> object:
            return torch.ops.aten.convolution_backward(
                *there,
                None,
                [layer.stride] * 2,
                [pad] * 2,
                [1, 1],
                False,
                [0, 0],
                1,
                [False, True, False],
            )

        def top1(there: list[torch.Tensor] = there) -> object:
            return topone_weight_grad(there[1], there[0], layer.kernel, layer.stride, pad)

        found[f"exact {name}"], found[f"topone {name}"] = exact, top1
    return found


def shortest(calls: dict[str, Callable[[], object]], seconds: float) -> dict[str, float]:
    """CPU seconds of the quickest call of each, taken in turns for ``seconds`` of wall time."""
    for call in calls.values():
        call()
    best = dict.fromkeys(calls, float("inf"))
    end, rounds = time.perf_counter() + seconds, 0
    while time.perf_counter() < end or rounds < 5:
        for name, call in calls.items():
            start = time.process_time_ns()
            call()
            best[name] = min(best[name], (time.process_time_ns() - start) / 1e9)
        rounds += 1
    return best


def measure(network: str, batch: int, seconds: float) -> list[dict[str, Any]]:
    rows: list[dict[str, Any]] = []
    for layer in NETWORKS[network]:
        times = shortest(contenders(layer, batch), seconds)
        baseline = min(times[f"exact {layout}"] for layout in LAYOUTS)
        row: dict[str, Any] = {"network": network, "layer": layer.name, **asdict(layer)}
        row["exact_seconds"] = baseline
        for layout in LAYOUTS:
            row[f"topone_{layout}_seconds"] = times[f"topone {layout}"]
            row[f"ratio_{layout}"] = times[f"topone {layout}"] / baseline
        rows.append(row)
    total: dict[str, Any] = {"network": network, "layer": "sum over layers", "batch": batch}
    for key in ("exact_seconds", *(f"topone_{layout}_seconds" for layout in LAYOUTS)):
        total[key] = sum(row[key] * row["count"] for row in rows)
    for layout in LAYOUTS:
        total[f"ratio_{layout}"] = total[f"topone_{layout}_seconds"] / total["exact_seconds"]
    return [*rows, total]


def show(rows: list[dict[str, Any]]) -> None:
    print(
        f"{'network':10}{'layer':22}{'times':>6}{'exact ms':>10}{'contiguous':>12}{'ch. last':>10}"
    )
    for row in rows:
        print(
            f"{row['network']:10}{row['layer']:22}{row.get('count', ''):>6}"
            f"{1e3 * row['exact_seconds']:10.2f}"
            f"{row['ratio_contiguous']:12.3f}{row['ratio_channels_last']:10.3f}"
        )


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--network", choices=[*NETWORKS, "all"], default="all")
    parser.add_argument("--batch", type=int, default=128)
    parser.add_argument("--seconds", type=float, default=2.0, help="wall time for each layer")
    parser.add_argument("--json", action="store_true", help="print rows as JSON, nothing else")
    arguments = parser.parse_args()
    torch.set_num_threads(1)
    status = backend.status()
    networks = list(NETWORKS) if arguments.network == "all" else [arguments.network]
    rows = [r for n in networks for r in measure(n, arguments.batch, arguments.seconds)]
    facts = {
        "question": "time of the top-1 filter gradient over torch's exact one, better layout",
        "statistic": "minimum CPU time of interleaved calls, one thread",
        "batch": arguments.batch,
        "torch": torch.__version__,
        "kernels": asdict(status),
        "processor": platform.processor() or platform.machine(),
    }
    if arguments.json:
        print(json.dumps({**facts, "rows": rows}, indent=1))
    else:
        print(f"{facts['question']}; batch {arguments.batch}; {status.backend} {status.isa}")
        show(rows)
    return 0


if __name__ == "__main__":
    sys.exit(main())
