"""How many bytes does the backward pass keep when weight gradients need no input?

Bytes of all storages saved for the backward pass of one training step, parameters left out: the
stock network; every convolution with an estimator that needs no input ("zero"); and that with
rectifiers that keep one bit an element. Counted, not timed.

    python benchmarks/memory.py
"""

from __future__ import annotations

import argparse
import json
import sys
from typing import Any

import torch
import torch.nn.functional as F
from torch import nn

import slimgrad
from slimgrad.approx import use_bit_mask_relu
from slimgrad.experiments.models import ImageShape, make_model

ASKED = {"resnet20": 0.55, "vgg19": 0.72}


def saved_bytes(model: nn.Module, batch: int) -> int:
    """Bytes of the distinct storages one training step keeps, parameters left out."""
    found: dict[int, int] = {}

    def note(tensor: torch.Tensor) -> torch.Tensor:
        storage = tensor.untyped_storage()
        found[storage.data_ptr()] = storage.nbytes()
        return tensor

    images = torch.randn(batch, 3, 32, 32).contiguous(memory_format=torch.channels_last)
    owned = {p.untyped_storage().data_ptr() for p in model.parameters()}
    with torch.autograd.graph.saved_tensors_hooks(note, lambda tensor: tensor):
        loss = F.cross_entropy(model(images), torch.zeros(batch, dtype=torch.int64))
    total = sum(size for place, size in found.items() if place not in owned)
    del loss
    return total


def rows_of(network: str, batch: int) -> dict[str, Any]:
    model = make_model(network, ImageShape(3, 32, 10)).train()
    model.to(memory_format=torch.channels_last)  # pyright: ignore[reportCallIssue]
    stock = saved_bytes(model, batch)
    handle = slimgrad.approximate(model, slimgrad.Zero())
    zero = saved_bytes(model, batch)
    use_bit_mask_relu(model)
    both = saved_bytes(model, batch)
    handle.restore()
    row: dict[str, Any] = {"network": network, "batch": batch, "stock_bytes": stock}
    row |= {"zero_bytes": zero, "zero_bit_mask_bytes": both, "ratio": both / stock}
    return row | {"asked_at_most": ASKED.get(network)}


def main() -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--networks", nargs="+", default=["resnet20", "vgg19", "cnn2"])
    parser.add_argument("--batch", type=int, default=128)
    parser.add_argument("--json", action="store_true", help="print rows as JSON, nothing else")
    options = parser.parse_args()
    rows = [rows_of(network, options.batch) for network in options.networks]
    if options.json:
        print(json.dumps({"torch": torch.__version__, "rows": rows}, indent=1))
        return 0
    print(f"{'network':10}{'stock MiB':>11}{'zero':>9}{'+ bits':>9}{'ratio':>8}{'asked':>8}")
    for row in rows:
        sizes = [row[key] / 2**20 for key in ("stock_bytes", "zero_bytes", "zero_bit_mask_bytes")]
        asked = "" if row["asked_at_most"] is None else f"{row['asked_at_most']:.2f}"
        print(f"{row['network']:10}{sizes[0]:11.1f}{sizes[1]:9.1f}{sizes[2]:9.1f}", end="")
        print(f"{row['ratio']:8.3f}{asked:>8}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
