"""Writes gradients of a network in training, for the benchmarks that want real ones.

Trains with SGD (rate 0.1, momentum 0.9, weight decay 5e-4) on crops and mirror images, and saves
the gradients of the named steps as one mapping from "step/parameter" to tensor.

    python benchmarks/real_gradient.py --data-dir cifar10 --out gradient.pt
"""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

import torch
import torch.nn.functional as F

from slimgrad.experiments.data import load
from slimgrad.experiments.data.batches import Batches
from slimgrad.experiments.models import ImageShape, make_model


def gradients(
    batches: Batches, model: torch.nn.Module, steps: list[int]
) -> dict[str, torch.Tensor]:
    """The gradients at ``steps`` (counted from 1) of one training run."""
    model.train().to(memory_format=torch.channels_last)  # pyright: ignore[reportCallIssue]
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.9, weight_decay=5e-4)
    found: dict[str, torch.Tensor] = {}
    step = 0
    for epoch in range(1 + max(steps) // batches.steps_per_epoch):
        for place in range(batches.steps_per_epoch):
            images, labels = batches.batch(epoch, place)
            step += 1
            optimizer.zero_grad()
            loss = F.cross_entropy(model(images), labels)
            loss.backward()
            if step in steps:
                print(f"step {step}: loss {loss.item():.3f}", flush=True)
                for name, parameter in model.named_parameters():
                    assert parameter.grad is not None
                    found[f"{step}/{name}"] = parameter.grad.detach().contiguous().clone()
            if step == max(steps):
                return found
            optimizer.step()
    return found


def main() -> int:
    parser = argparse.ArgumentParser(description="Gradients of a network in training.")
    parser.add_argument("--data", default="folders", help="data set (default folders)")
    parser.add_argument("--data-dir", type=Path, help="archive or folder of the data set")
    parser.add_argument("--model", default="resnet18")
    parser.add_argument("--batch-size", type=int, default=128)
    parser.add_argument("--steps", type=int, nargs="+", default=[10, 60, 120])
    parser.add_argument("--out", type=Path, required=True)
    options = parser.parse_args()
    dataset, _ = load(options.data, options.data_dir)
    shape = ImageShape(dataset.train.images.shape[1], dataset.train.images.shape[2], 10)
    model = make_model(options.model, shape, seed=0)
    batches = Batches(dataset, options.batch_size, seed=0)
    torch.save(gradients(batches, model, options.steps), options.out)
    return 0


if __name__ == "__main__":
    sys.exit(main())
