"""The runs of a plan on one rank; also the program that every worker process runs."""

from __future__ import annotations

import os
import sys
import traceback
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import torch
import torch.distributed as dist
from torch.distributed.elastic.multiprocessing.errors import record

from slimgrad.core.errors import SlimgradWarning
from slimgrad.experiments.config import TrainConfig
from slimgrad.experiments.data.cache import read_cache
from slimgrad.experiments.group import EXCHANGE_TIMEOUT, Group, process_group
from slimgrad.experiments.launch import loopback_only
from slimgrad.experiments.loop import Run
from slimgrad.experiments.plan import Plan
from slimgrad.experiments.records import RecordWriter


def execute(plan: Plan, group: Group) -> None:
    """Do all runs of ``plan`` on this rank; the process group is initialised."""
    dataset = read_cache(plan.dataset)
    writer = RecordWriter(plan.records) if group.rank == 0 else None
    shown: set[str] = set()
    try:
        for run in plan.runs:
            with recorded_warnings(writer, run.config, shown):
                Run(run, dataset, group, writer).execute()
    finally:
        if writer is not None:
            writer.close()


@contextmanager
def recorded_warnings(
    writer: RecordWriter | None, config: TrainConfig, shown: set[str]
) -> Iterator[None]:
    """Record slimgrad's warnings about a run, besides showing each text once.

    What a worker process shows ends in a log file: a method without effect would look like one
    with an effect.
    """
    usual = warnings.showwarning

    def show(message: Warning | str, category: type[Warning], *place: Any) -> None:
        text = str(message)
        if issubclass(category, SlimgradWarning):
            if writer is not None:
                name, seed = config.method.name, config.seed
                writer.write("warning", method=name, seed=seed, text=text, process=os.getpid())
            if text in shown:
                return
            shown.add(text)
        usual(message, category, *place)

    with warnings.catch_warnings():
        warnings.showwarning = show
        yield


@contextmanager
def limited_threads(threads: int) -> Iterator[None]:
    """Let torch use ``threads`` threads inside the ``with`` block."""
    before = torch.get_num_threads()
    torch.set_num_threads(threads)
    try:
        yield
    finally:
        torch.set_num_threads(before)


def run_here(plan: Plan) -> None:
    """Do all runs of ``plan`` in this process, as the only worker."""
    store = dist.HashStore()  # pyright: ignore[reportPrivateImportUsage]
    with (
        loopback_only(),
        process_group(store=store, rank=0, world_size=1),
        limited_threads(plan.threads),
    ):
        execute(plan, Group(0, 1))


def launcher_pid() -> int | None:
    """The process that torch's elastic launcher runs in, when it started this one."""
    return os.getppid() if "TORCHELASTIC_RUN_ID" in os.environ else None


@record
def join_launch(plan_path: str) -> None:
    """Do all runs of the plan, as the worker that the launcher's environment variables name."""
    plan = Plan.read(Path(plan_path))
    torch.set_num_threads(plan.threads)
    dist.init_process_group("gloo", timeout=EXCHANGE_TIMEOUT)
    print(f"rank {dist.get_rank()} of {dist.get_world_size()}, process {os.getpid()}", flush=True)
    execute(plan, Group(dist.get_rank(), dist.get_world_size(), launcher_pid()))
    dist.barrier()
    dist.destroy_process_group()


def main() -> None:
    """Run the plan named on the command line; on failure end at once, whatever threads do."""
    try:
        join_launch(sys.argv[1])
    except Exception:
        traceback.print_exc()
        sys.stderr.flush()
        # A thread that waits for a dead peer must not keep this process, and so the launch, alive.
        os._exit(1)


if __name__ == "__main__":
    main()
