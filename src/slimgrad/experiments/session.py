"""From validated settings to finished records; what fails on bad input comes first."""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

import torch
import torch.distributed as dist

from slimgrad.core.errors import CheckpointError, ConfigError, WorkerError
from slimgrad.experiments import checkpoint, data, launch, provenance
from slimgrad.experiments.config import (
    OUTSIDE_FINGERPRINT,
    CompareConfig,
    MethodConfig,
    RunSettings,
    TrainConfig,
)
from slimgrad.experiments.data.batches import Batches
from slimgrad.experiments.group import Group, process_group
from slimgrad.experiments.models import ImageShape, build_model
from slimgrad.experiments.plan import Plan, RunPlan, checkpoint_path
from slimgrad.experiments.records import (
    FILE_NAME,
    Record,
    read_records,
    write_records,
)
from slimgrad.experiments.training import check_feedback
from slimgrad.experiments.worker import (
    execute,
    launcher_pid,
    limited_threads,
    run_here,
)

Command = Literal["train", "compare"]
PLAN_FILE, LOGS_FOLDER = "plan.json", "logs"
_SESSION_FILES = (
    FILE_NAME,
    "checkpoints",
    PLAN_FILE,
    LOGS_FOLDER,
    # what the command line makes of the records: never to be left beside newer ones
    "summary.json",
    "report.html",
)


@dataclass(frozen=True)
class Outcome:
    """What a command left behind.

    Attributes:
        out: folder with records, checkpoints and logs.
        records: all records, in the order they were written.
    """

    out: Path
    records: list[Record]

    @property
    def results(self) -> list[Record]:
        """The result records, one for each finished run."""
        return [record for record in self.records if record["kind"] == "result"]


def run_session(command: Command, config: RunSettings, runs: list[TrainConfig]) -> Outcome | None:
    """Do ``runs``, which share everything but method and seed; None on ranks other than 0.

    Raises:
        ConfigError, DataError, CheckpointError: something is wrong with the input; nothing was
            written.
        WorkerError: a worker failed.
    """
    place = launch.joined_launch()
    if place is not None:
        if place[1] != config.workers:
            config = config.replace(workers=place[1])
            runs = [run.replace(workers=place[1]) for run in runs]
        return _join(command, config, runs)
    plan = prepare(command, config, runs)
    open_records(config, plan)
    if plan.runs and config.workers == 1:
        run_here(plan)
    elif plan.runs:
        path = config.out / PLAN_FILE
        plan.write(path)
        launch.launch(path, config.workers, plan.threads, config.out / LOGS_FOLDER)
    return Outcome(config.out, read_records(plan.records))


def _join(command: Command, config: RunSettings, runs: list[TrainConfig]) -> Outcome | None:
    """Take part in a launch that something else started; rank 0 writes.

    Raises:
        WorkerError: another rank failed.
    """
    with process_group():
        group = Group(dist.get_rank(), dist.get_world_size(), launcher_pid())
        try:
            plan = _execute_together(command, config, runs, group)
        except RuntimeError as error:
            if not launch.lost_peer(str(error)):
                raise
            raise WorkerError(
                f"rank {group.rank} of {group.world_size} stopped because another rank failed; "
                "the message of that rank says why"
            ) from error
    return Outcome(config.out, read_records(plan.records)) if group.rank == 0 else None


def _execute_together(
    command: Command, config: RunSettings, runs: list[TrainConfig], group: Group
) -> Plan:
    # One rank of each machine decodes the images; the others then find them in the cache.
    first = int(os.environ.get("LOCAL_RANK", group.rank)) == 0
    plan = prepare(command, config, runs) if first else None
    dist.barrier()
    plan = plan or prepare(command, config, runs)
    dist.barrier()
    if group.rank == 0:
        open_records(config, plan)
    with limited_threads(plan.threads):
        execute(plan, group)
    dist.barrier()
    return plan


def prepare(command: Command, config: RunSettings, runs: list[TrainConfig]) -> Plan:
    """Check everything that can be checked before the first step; writes only to the cache."""
    _check_folder(config.out)
    dataset, cache = data.load(config.data.name, config.data.path, config.data.cache_dir)
    with torch.device("meta"):
        model = build_model(config.model.name, ImageShape.of(dataset), config.model.settings)
    for run in runs:
        check_feedback(model, run.method)
    Batches(dataset, config.batch_size, seed=0)
    records = config.out / FILE_NAME
    finished = _finished(records, config, dataset.checksum) if config.resume else set()
    plans = []
    for run in runs:
        if (run.method.name, run.seed) in finished:
            continue
        path = checkpoint_path(run)
        start = 0
        if config.resume and path.exists():
            start = checkpoint.load(path, run.fingerprint(dataset.checksum)).step
        final = command == "train"
        plans.append(RunPlan(config=run, checkpoint=path, start_step=start, keep_final=final))
    local_workers = int(os.environ.get("LOCAL_WORLD_SIZE", config.workers))
    return Plan(
        command=command,
        dataset=cache,
        dataset_provenance=dataset.provenance,
        dataset_checksum=dataset.checksum,
        threads=launch.threads_per_worker(local_workers, config.threads),
        records=records,
        runs=plans,
    )


def open_records(config: RunSettings, plan: Plan) -> None:
    """Begin the records of a session: drop what will be computed again, or set old files aside."""
    kept: list[Record] = []
    aside = None
    if config.resume:
        starts: dict[tuple[Any, Any], int]
        starts = {(run.config.method.name, run.config.seed): run.start_step for run in plan.runs}

        def wanted(record: Record) -> bool:
            run = (record.get("method"), record.get("seed"))
            return run not in starts or record.get("step", 0) <= starts[run]

        kept = [record for record in read_records(plan.records) if wanted(record)]
    else:
        aside = _set_aside(config.out)
    methods = _methods(config)
    exact = [method.name for method in methods if method.is_exact]
    session = {
        "kind": "session",
        "command": plan.command,
        "config": config.model_dump(mode="json", exclude_none=True),
        "versions": provenance.versions(),
        "hardware": provenance.hardware(config.workers, plan.threads),
        "methods": [method.name for method in methods],
        "seeds": _seeds(config),
        "reference": exact[0] if exact else None,
        "data": plan.dataset_provenance,
        "data_checksum": plan.dataset_checksum,
        "resumed": config.resume,
        "earlier_files": aside,
    }
    write_records(plan.records, [*kept, session])


def _methods(config: RunSettings) -> list[MethodConfig]:
    return config.methods if isinstance(config, CompareConfig) else [_train(config).method]


def _seeds(config: RunSettings) -> list[int]:
    return config.seeds if isinstance(config, CompareConfig) else [_train(config).seed]


def _train(config: RunSettings) -> TrainConfig:
    assert isinstance(config, TrainConfig)
    return config


def _check_folder(out: Path) -> None:
    """ConfigError unless ``out`` is a folder that can be written to, or can be made."""
    place = out
    while not place.exists() and place != place.parent:
        place = place.parent
    if not place.is_dir():
        raise ConfigError(f"out = {out}: {place} is a file, not a folder; choose another folder")
    if not os.access(place, os.W_OK | os.X_OK):
        raise ConfigError(f"out = {out}: {place} cannot be written to; choose another folder")


def _set_aside(out: Path) -> str | None:
    """Move the files of an earlier session into a folder of their own, and name it."""
    present = [name for name in _SESSION_FILES if (out / name).exists()]
    if FILE_NAME not in present:
        return None
    number = 1
    while (out / f"earlier-{number}").exists():
        number += 1
    aside = out / f"earlier-{number}"
    aside.mkdir()
    for name in present:
        (out / name).rename(aside / name)
    return aside.name


def _finished(records: Path, config: RunSettings, dataset_checksum: str) -> set[tuple[str, int]]:
    """(method, seed) of the runs that need not be done again.

    Raises:
        CheckpointError: there are no records, or they are of other data or another configuration.
    """
    if not records.exists():
        raise CheckpointError(
            f"there is nothing to resume: {records} does not exist; start without --resume"
        )
    found = read_records(records)
    sessions = [record for record in found if record["kind"] == "session"]
    if not sessions:
        raise CheckpointError(f"{records} holds no session; start without --resume")
    if sessions[-1].get("data_checksum", dataset_checksum) != dataset_checksum:
        raise CheckpointError(
            f"{records} belongs to other data (sha256 {sessions[-1]['data_checksum']}, "
            f"now {dataset_checksum}); resume with the data it was made with, "
            "or choose another output folder"
        )
    before, now = _comparable(sessions[-1]["config"]), _comparable(config.model_dump(mode="json"))
    for name in now:
        if before.get(name, now[name]) != now[name]:
            raise CheckpointError(
                f"{records} belongs to another configuration: {name} was "
                f"{before[name]!r}, is now {now[name]!r}; resume with the settings it was made "
                "with, or choose another output folder"
            )
    return {(r["method"], r["seed"]) for r in found if r["kind"] == "result"}


def _comparable(config: dict[str, Any]) -> dict[str, Any]:
    """The settings that must agree before a session is resumed, methods by their names."""
    kept = {
        name: _without_none(value)
        for name, value in config.items()
        if name not in OUTSIDE_FINGERPRINT
    }
    methods = kept.pop("methods", [])
    kept.pop("seeds", None)
    # Where the images lie is free; which they are is told by their checksum.
    kept["data.augment"] = config["data"]["augment"]
    return kept | {f"method {method['name']!r}": method for method in methods}


def _without_none(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: _without_none(item) for key, item in value.items() if item is not None}
    if isinstance(value, list):
        return [_without_none(item) for item in value]
    return value
