from __future__ import annotations

import contextlib
import gc
import os

import pytest
import torch.distributed as dist
from torch.nn.parallel import DistributedDataParallel

from slimgrad.core.errors import WorkerError
from slimgrad.experiments.group import Group, require_equal
from slimgrad.experiments.train import train


def test_ranks_that_differ_are_named():
    require_equal([b"a", b"a", b"a"], "parameters")
    with pytest.raises(WorkerError, match="rank 2 holds other parameters than rank 0"):
        require_equal([b"a", b"a", b"b"], "parameters")


def test_a_worker_stops_when_its_launcher_died():
    Group(0, 1).check_parent()
    Group(0, 1, os.getppid()).check_parent()
    with pytest.raises(WorkerError, match="rank 1: the launcher died"):
        Group(1, 2, os.getpid()).check_parent()


@pytest.mark.parametrize("joined", [False, True])
@pytest.mark.parametrize("stopped", [False, True])
def test_nothing_that_uses_the_group_outlives_it(
    tiny_config, interrupt_at, monkeypatch, request, joined: bool, stopped: bool
):
    if joined:
        request.getfixturevalue("launch_of_one")
    destroy, alive = dist.destroy_process_group, []

    def look_and_destroy() -> None:
        alive.append(sum(type(found) is DistributedDataParallel for found in gc.get_objects()))
        destroy()

    monkeypatch.setattr(dist, "destroy_process_group", look_and_destroy)
    gc.collect()
    gc.disable()  # or chance decides what is left
    try:
        with interrupt_at(3) if stopped else contextlib.nullcontext():
            train(tiny_config(epochs=1))
    finally:
        gc.enable()
    assert alive == [0]
