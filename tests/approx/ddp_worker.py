"""One rank of a two-process run; prints what the test compares. Arguments: rank, world, store."""

from __future__ import annotations

import gc
import hashlib
import json
import sys

import torch
import torch.distributed as dist
from torch import nn

from slimgrad.approx import EveryNthLayer, Random, Skip, Zero, approximate
from slimgrad.core.errors import ConfigError


def train(estimator, schedule, rank, steps=4):
    torch.manual_seed(0)
    model = nn.Sequential(
        nn.Conv2d(1, 4, 3), nn.ReLU(), nn.Conv2d(4, 4, 3), nn.Flatten(), nn.Linear(16, 3)
    )
    start = [p.detach().clone() for p in model.parameters()]
    optimizer = torch.optim.SGD(model.parameters(), lr=0.05)
    ddp = nn.parallel.DistributedDataParallel(model, bucket_cap_mb=0.0005)
    handle = approximate(ddp, estimator, schedule=schedule, optimizer=optimizer, seed=1)
    generator = torch.Generator().manual_seed(rank)
    local = None
    for _ in range(steps):
        optimizer.zero_grad()
        ddp(torch.randn(2, 1, 6, 6, generator=generator)).square().mean().backward()
        local = model[2].weight.grad.clone()
        optimizer.step()
    digest = hashlib.sha256()
    for parameter in model.parameters():
        digest.update(parameter.detach().numpy().tobytes())
    moved = [not torch.equal(a, b) for a, b in zip(start, model.parameters(), strict=True)]
    names = [row.name for row in handle.report().layers]
    handle.restore()
    assert local is not None
    return {
        "digest": digest.hexdigest(),
        "moved": moved,
        "step": handle.current_step,
        "names": names,
        "gradient_sd": float(local.std()),
    }


def main() -> None:
    rank, world, store = int(sys.argv[1]), int(sys.argv[2]), sys.argv[3]
    torch.set_num_threads(1)
    dist.init_process_group("gloo", init_method=f"file://{store}", rank=rank, world_size=world)
    results = {
        "zero": train(Zero(), None, rank),
        "zero_layer_two": train(Zero(), EveryNthLayer(4, start=2), rank),
        "random": train(Random(scale=1.0), None, rank),
    }
    try:
        train(Skip(), None, rank)
    except ConfigError as error:
        results["skip"] = str(error)
    print(json.dumps(results))
    # A DDP module that a cycle keeps alive would end on the group's own thread and wait for ever.
    gc.collect()
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
