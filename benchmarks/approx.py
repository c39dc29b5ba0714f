"""Are estimated weight gradients faster than torch's exact one, and by how much, layer by layer?

Every figure is the time of one call divided by the time of torch's exact weight gradient in the
better of both memory layouts: one thread, CPU time, all interleaved, minimum of all rounds.
"exact" is the position kernel with all positions, "rows 1/8" draws positions by the norm of their
gradient, selection included; "strata 1/8" one of every eight neighbours.

    python benchmarks/approx.py --network vgg19
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
from typing import Any

import torch

from slimgrad import kernels
from slimgrad.approx.estimators import (
    BlockMeans,
    GradientEstimator,
    LayerGeometry,
    PatchSampling,
    PooledMeans,
    RowSampling,
    SampleSampling,
    StratifiedSampling,
    TopOne,
    WalshPairs,
)
from slimgrad.approx.estimators.exact import exact_weight_grad
from slimgrad.kernels import backend

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


ESTIMATORS: dict[str, GradientEstimator | None] = {
    "topone": TopOne(),
    "exact": None,
    "rows 1/4": RowSampling(keep=1 / 4),
    "rows 1/8": RowSampling(keep=1 / 8),
    "means + 1/8": RowSampling(keep=1 / 8, means="sample"),
    "strata 1/8": StratifiedSampling(keep=1 / 8),
    "samples 1/4": SampleSampling(keep=1 / 4),
    "blocks + 1/8": BlockMeans(keep=1 / 8),
    "walsh": WalshPairs(),
    "pooled": PooledMeans(),
    "patches": PatchSampling(),
}


def contenders(layer: Layer, batch: int) -> dict[tuple[str, str], Callable[[], object]]:
    """Torch's weight gradient and all estimates of one layer, in both layouts."""
    generator = torch.Generator().manual_seed(0)
    pad, out = layer.kernel // 2, layer.size // layer.stride
    x = torch.randn((batch, layer.channels, layer.size, layer.size), generator=generator).relu_()
    # Positions differ in weight, as they do in training.
    share = torch.rand((batch, 1, out, out), generator=generator) ** 3
    grad_out = torch.randn((batch, layer.filters, out, out), generator=generator) * share
    shape = (layer.filters, layer.channels, layer.kernel, layer.kernel)
    geometry = LayerGeometry("conv2d", shape, (layer.stride, layer.stride), (pad, pad))
    found: dict[tuple[str, str], Callable[[], object]] = {}
    for name, layout in LAYOUTS.items():
        there_x, there_grad = (t.contiguous(memory_format=layout) for t in (x, grad_out))
        found["torch", name] = partial(exact_weight_grad, there_x, there_grad, geometry)
        for label, estimator in ESTIMATORS.items():
            if estimator is None:
                found[label, name] = partial(
                    kernels.position_weight_grad,
                    there_x,
                    there_grad,
                    layer.kernel,
                    layer.stride,
                    pad,
                )
            else:
                found[label, name] = partial(
                    estimator.weight_grad, there_x, there_grad, geometry, 1
                )
    return found


def shortest(
    calls: dict[tuple[str, str], Callable[[], object]], seconds: float
) -> dict[tuple[str, str], float]:
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
    """One row a layer, and one for the sum over the network's layers."""
    rows: list[dict[str, Any]] = []
    for layer in NETWORKS[network]:
        times = shortest(contenders(layer, batch), seconds)
        row: dict[str, Any] = {"network": network, "layer": layer.name, **asdict(layer)}
        row["torch_seconds"] = min(times["torch", layout] for layout in LAYOUTS)
        row["seconds"] = {f"{label} {layout}": t for (label, layout), t in times.items()}
        rows.append(row)
    total: dict[str, Any] = {"network": network, "layer": "sum over layers", "batch": batch}
    total["torch_seconds"] = sum(row["torch_seconds"] * row["count"] for row in rows)
    total["seconds"] = {
        name: sum(row["seconds"][name] * row["count"] for row in rows)
        for name in rows[0]["seconds"]
    }
    rows.append(total)
    for row in rows:
        row["ratios"] = {name: t / row["torch_seconds"] for name, t in row["seconds"].items()}
    return rows


def show(rows: list[dict[str, Any]], layout: str) -> None:
    print(f"\n{layout}")
    print(f"{'network':9}{'layer':21}{'times':>6}{'torch ms':>9}", end="")
    print("".join(f"{label:>13}" for label in ESTIMATORS))
    for row in rows:
        print(f"{row['network']:9}{row['layer']:21}{row.get('count', ''):>6}", end="")
        print(f"{1e3 * row['torch_seconds']:9.2f}", end="")
        print("".join(f"{row['ratios'][f'{label} {layout}']:13.3f}" for label in ESTIMATORS))


def main() -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
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
        "question": "time of an estimate over torch's exact weight gradient, better layout",
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
        for layout in LAYOUTS:
            show(rows, layout)
    return 0


if __name__ == "__main__":
    sys.exit(main())
