"""Starts a world of ranks that runs a list of checks in order, and what the checks share."""

import gc
import time
import warnings
from datetime import timedelta

import torch
import torch.distributed as dist
import torch.multiprocessing as mp
from torch import nn
from torch.nn.parallel import DistributedDataParallel

from slimgrad.comm.compressor import Compressor
from slimgrad.comm.policy import Policy
from slimgrad.core.errors import NoEffectWarning

GROUP_SECONDS = 60
SMALL_BUCKETS_MB = 0.01


def run_world(world_size, checks, store):
    """Run ``checks``, functions of (rank, world_size), in ``world_size`` processes.

    The first failure of any rank stops all and is raised here with its traceback.
    """
    mp.spawn(_rank_main, (world_size, checks, str(store)), nprocs=world_size)


def _rank_main(rank, world_size, checks, store):
    torch.set_num_threads(1)
    warnings.simplefilter("error", NoEffectWarning)
    dist.init_process_group(
        "gloo",
        store=dist.FileStore(store, world_size),
        rank=rank,
        world_size=world_size,
        timeout=timedelta(seconds=GROUP_SECONDS),
    )
    for check in checks:
        start = time.perf_counter()
        try:
            check(rank, world_size)
        except BaseException as error:
            error.add_note(f"in {check.__name__} on rank {rank}")
            raise
        if rank == 0:
            print(f"{check.__name__}: {time.perf_counter() - start:.2f} s", flush=True)
    # A DDP module that a cycle keeps alive would end on the group's own thread and wait for ever.
    gc.collect()
    dist.destroy_process_group()


def network(seed=0):
    torch.manual_seed(seed)
    return nn.Sequential(
        nn.Linear(48, 64), nn.ReLU(), nn.Linear(64, 64), nn.ReLU(), nn.Linear(64, 10)
    )


def wrap(module, **settings):
    return DistributedDataParallel(module, bucket_cap_mb=SMALL_BUCKETS_MB, **settings)


def batch(step, rank, rows=16):
    generator = torch.Generator().manual_seed(1000 * step + rank)
    x = torch.randn(rows, 48, generator=generator)
    return x, (x[:, 0] > 0).long()


def loss_of(model, step, rank, rows=16):
    x, y = batch(step, rank, rows)
    return nn.functional.cross_entropy(model(x), y)


def descend(model, lr=0.1):
    """One step of gradient descent; loads far less code than an optimizer."""
    with torch.no_grad():
        for parameter in model.parameters():
            parameter -= lr * parameter.grad
    model.zero_grad()


def train_and_close(model, handle, steps, rank):
    """Weights and compression state after some steps of gradient descent."""
    for step in steps:
        loss_of(model, step, rank).backward()
        descend(model)
    handle.close()
    return model.module.state_dict(), handle.state_dict()


def gathered(tensor, world_size):
    """The tensors of all ranks, over the default group."""
    parts = [torch.empty_like(tensor) for _ in range(world_size)]
    dist.all_gather(parts, tensor.contiguous())
    return parts


def assert_same_on_all_ranks(tensors, world_size):
    for tensor in tensors:
        for other in gathered(tensor.detach(), world_size):
            assert torch.equal(tensor, other)


def mean_by_hand(name, gradients, quantizer, *, step, seed=0, policy=None):
    """The mean the exchange must give, from the local gradients of all ranks."""
    exact = (policy or Policy()).is_exact(name, tuple(gradients[0].shape))
    compressor = Compressor(None if exact else quantizer)
    total = torch.zeros(gradients[0].numel())
    for rank, gradient in enumerate(gradients):
        frame = compressor.compress(gradient, key=name, step=step, rank=rank, seed=seed)
        total += compressor.decompress(frame)
    return (total / len(gradients)).view_as(gradients[0])
