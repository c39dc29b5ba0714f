"""Is a whole training step faster with estimated weight gradients, and by how much?

Forward, backward and SGD step on random images, one thread, CPU time, all settings taken in turns,
minimum of the rounds. Every figure is the time of the stock network in the better of both memory
layouts over the time of the setting, so above 1 is faster:

* exact through the library: approximate() with a schedule that always says exact;
* tuned: exact gradients, after tune();
* rows 1/8: every convolution but the first estimates from an eighth of the positions, the
  others as tuned;
* schedule 1: the same for every fourth layer, from the second.

    python benchmarks/approx_step.py --networks vgg19
"""

from __future__ import annotations

import argparse
import copy
import json
import platform
import sys
import time
from collections.abc import Callable
from typing import Any

import torch
import torch.nn.functional as F
from torch import nn

import slimgrad
from slimgrad.experiments.models import ImageShape, make_model
from slimgrad.kernels import backend

FORMATS = {"contiguous": torch.contiguous_format, "channels_last": torch.channels_last}
ASKED = {
    ("vgg19", "tuned"): 1.08,
    ("vgg19", "rows 1/8"): 1.30,
    ("resnet20", "rows 1/8"): 1.13,
    ("cnn2", "rows 1/8"): 1.14,
    ("vgg19", "schedule 1"): 1.07,
    ("resnet20", "schedule 1"): 1.03,
    ("cnn2", "schedule 1"): 1.12,
}
ASKED |= {(network, "exact through the library"): 0.99 for network in ("vgg19", "resnet20", "cnn2")}


def convolutions(model: nn.Module) -> list[str]:
    return [name for name, m in model.named_modules() if isinstance(m, nn.Conv2d)]


def stepper(model: nn.Module, images: torch.Tensor) -> Callable[[], None]:
    """One training step of ``model`` on ``images``."""
    optimizer = torch.optim.SGD(model.parameters(), lr=1e-3, momentum=0.9)
    labels = torch.arange(len(images)) % 10

    def step() -> None:
        optimizer.zero_grad()
        F.cross_entropy(model(images), labels).backward()
        optimizer.step()

    return step


def settings(network: str, batch: int, repeats: int) -> dict[str, Callable[[], None]]:
    """The step of every setting."""
    model = make_model(network, ImageShape(3, 32, 10)).train()
    images = torch.randn(batch, 3, 32, 32, generator=torch.Generator().manual_seed(0))
    found = {}
    for name, layout in FORMATS.items():
        stock = copy.deepcopy(model).to(memory_format=layout)  # pyright: ignore[reportCallIssue]
        found[f"stock {name}"] = stepper(stock, images.to(memory_format=layout))
    tuned = copy.deepcopy(model)
    report = slimgrad.tune(tuned, images, repeats=repeats)
    print(f"{network}: {report.memory_format}, position kernel in {len(report.chosen)} layers")
    images = images.to(memory_format=FORMATS[report.memory_format])
    best = min(report.stock_step_seconds, key=lambda name: report.stock_step_seconds[name])
    exact = copy.deepcopy(model).to(memory_format=FORMATS[best])  # pyright: ignore[reportCallIssue]
    slimgrad.approximate(exact, slimgrad.Exact())
    found["exact through the library"] = stepper(exact, images.to(memory_format=FORMATS[best]))
    found["tuned"] = stepper(tuned, images)
    chosen = convolutions(model)[1:]
    for name, where in {"rows 1/8": chosen, "schedule 1": chosen[::4]}.items():
        sampled = copy.deepcopy(tuned)
        slimgrad.approximate(sampled, slimgrad.RowSampling(keep=1 / 8), where=where)
        found[name] = stepper(sampled, images)
    return found


def measure(network: str, batch: int, rounds: int) -> list[dict[str, Any]]:
    """One row a setting."""
    steps = settings(network, batch, repeats=3)
    least = dict.fromkeys(steps, float("inf"))
    for _ in range(rounds + 1):
        for name, step in steps.items():
            start = time.process_time_ns()
            step()
            least[name] = min(least[name], (time.process_time_ns() - start) / 1e9)
    stock = min(least[f"stock {layout}"] for layout in FORMATS)
    return [
        {
            "network": network,
            "batch": batch,
            "setting": name,
            "seconds": seconds,
            "gain": stock / seconds,
            "asked_at_least": ASKED.get((network, name)),
        }
        for name, seconds in least.items()
    ]


def main() -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--networks", nargs="+", default=["vgg19", "resnet20", "cnn2"])
    parser.add_argument("--batch", type=int, default=128)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--json", help="file to write rows, versions and hardware to")
    options = parser.parse_args()
    torch.set_num_threads(1)
    rows = []
    for network in options.networks:
        found = measure(network, options.batch, options.rounds)
        for row in found:
            asked = row["asked_at_least"]
            beside = "" if asked is None else f"   asked {asked:.2f}"
            print(f"  {row['setting']:28}{1e3 * row['seconds']:9.1f} ms{row['gain']:8.3f}x{beside}")
        rows += found
    if options.json:
        about = {"torch": torch.__version__, "isa": backend.status().isa}
        about |= {"processor": platform.processor() or platform.machine()}
        with open(options.json, "w") as file:
            json.dump({**about, "rows": rows}, file, indent=1)
    return 0


if __name__ == "__main__":
    sys.exit(main())
