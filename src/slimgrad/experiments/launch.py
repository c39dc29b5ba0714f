"""Starts worker processes with torch's elastic launcher, or joins a launch under way."""

from __future__ import annotations

import logging
import os
import re
import signal
import sys
import threading
import uuid
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from slimgrad.core.errors import ConfigError, WorkerError
from slimgrad.experiments.provenance import usable_cores

if TYPE_CHECKING:
    from torch.distributed.elastic.multiprocessing.errors import ProcessFailure

WORKER_MODULE = "slimgrad.experiments.worker"
_MONITOR_SECONDS = 0.2
_SHUTDOWN_SECONDS = 10
_SIGNALS = ("SIGTERM", "SIGINT", "SIGHUP", "SIGQUIT")
# What a survivor says when a peer is gone: its failure is a consequence, not the cause.
_LOST_PEER = re.compile(
    r"gloo|Connection (closed|reset)|Broken pipe|recvValue failed|Dist(Network|Backend)Error",
    re.IGNORECASE,
)


def threads_per_worker(workers: int, threads: int = 0) -> int:
    """Threads a worker: ``threads``, or an equal share of the usable cores when that is 0.

    >>> threads_per_worker(2, threads=3)
    3
    """
    return threads or max(1, usable_cores() // workers)


def joined_launch(environment: Mapping[str, str] | None = None) -> tuple[int, int] | None:
    """(rank, world size) when this process was started by torchrun or another launcher, else None.

    >>> joined_launch({"RANK": "1", "WORLD_SIZE": "2"})
    (1, 2)
    >>> joined_launch({}) is None
    True
    """
    environment = os.environ if environment is None else environment
    rank, size = environment.get("RANK"), environment.get("WORLD_SIZE")
    if rank is None or size is None:
        return None
    try:
        return int(rank), int(size)
    except ValueError:
        raise ConfigError(
            f"the environment has RANK={rank!r} and WORLD_SIZE={size!r}: both must be integers, "
            "as torchrun sets them, or unset"
        ) from None


def launch(plan_path: Path, workers: int, threads: int, logs: Path) -> None:
    """Run the plan in ``workers`` processes on this machine and wait for their end.

    When one fails, the others are stopped. Traffic stays on the loopback interface.

    Args:
        plan_path: file written by ``Plan.write``.
        workers: number of processes.
        threads: threads a process.
        logs: folder for what the processes print.

    Raises:
        WorkerError: a worker failed; the text names the rank and the reason.
    """
    from torch.distributed.elastic.multiprocessing.api import SignalException
    from torch.distributed.elastic.multiprocessing.errors import ChildFailedError
    from torch.distributed.launcher.api import LaunchConfig, elastic_launch

    from slimgrad.experiments.logs import WorkerLogs

    logs.mkdir(parents=True, exist_ok=True)
    config = LaunchConfig(
        min_nodes=1,
        max_nodes=1,
        nproc_per_node=workers,
        run_id=uuid.uuid4().hex,
        rdzv_backend="c10d",
        rdzv_endpoint="127.0.0.1:0",
        local_addr="127.0.0.1",
        max_restarts=0,
        monitor_interval=_MONITOR_SECONDS,
        shutdown_timeout=_SHUTDOWN_SECONDS,
        logs_specs=WorkerLogs(logs),
    )
    environment = {"OMP_NUM_THREADS": str(threads), "PYTHONUNBUFFERED": "1"}
    with (
        loopback_only(),
        _environment(environment),
        _signals_kept(),
        _launcher_log(logs / "launcher.log"),
    ):
        try:
            elastic_launch(config, sys.executable)("-m", WORKER_MODULE, str(plan_path.resolve()))
        except ChildFailedError as error:
            raise WorkerError(failure_message(error.failures, workers, logs)) from None
        except SignalException as stop:
            if stop.sigval == signal.SIGINT:
                raise KeyboardInterrupt from None
            raise SystemExit(128 + stop.sigval) from None


def lost_peer(text: str) -> bool:
    """Whether the text of an error says that another rank is gone, not what went wrong.

    >>> lost_peer("[gloo/transport/tcp/pair.cc:538] Connection closed by peer")
    True
    """
    return _LOST_PEER.search(text) is not None


def failure_message(failures: Mapping[int, ProcessFailure], workers: int, logs: Path) -> str:
    """One line about the failure that caused the others."""

    def order(rank: int) -> int:
        failure = failures[rank]
        if lost_peer(_exception_text(failure)):
            return 2
        return 1 if failure.exitcode == -signal.SIGTERM else 0

    rank = min(failures, key=order)
    failure = failures[rank]
    log = logs / f"rank{rank}.stderr.log"
    if failure.exitcode < 0:
        number = -failure.exitcode
        reason = f"killed by {failure.signal_name()} (signal {number})"
    else:
        reason = _exception_text(failure) or _last_line(log) or f"exit code {failure.exitcode}"
    return (
        f"rank {rank} of {workers} failed: {reason}; the other workers were stopped; log: {log}; "
        "once the cause is gone, --resume takes the run up again"
    )


def _exception_text(failure: ProcessFailure) -> str:
    """First line of the exception the worker recorded; "" when it recorded none."""
    message = failure.error_file_data.get("message")
    if not isinstance(message, dict):
        return ""
    lines = str(message.get("message", "")).strip().splitlines()
    return lines[0] if lines else ""


def _last_line(log: Path) -> str:
    try:
        lines = log.read_text(errors="replace").strip().splitlines()
    except OSError:
        return ""
    return lines[-1].strip() if lines else ""


@contextmanager
def _environment(changes: Mapping[str, str]) -> Iterator[None]:
    before = {name: os.environ.get(name) for name in changes}
    os.environ.update(changes)
    try:
        yield
    finally:
        for name, value in before.items():
            if value is None:
                os.environ.pop(name, None)
            else:
                os.environ[name] = value


@contextmanager
def loopback_only() -> Iterator[None]:
    """Let gloo, in this process and those it starts, use the loopback interface and no other."""
    with _environment({"GLOO_SOCKET_IFNAME": "lo"} if sys.platform == "linux" else {}):
        yield


@contextmanager
def _signals_kept() -> Iterator[None]:
    """Put back the signal handlers that the launcher replaces and leaves replaced."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    before = {name: signal.getsignal(getattr(signal, name)) for name in _SIGNALS}
    try:
        yield
    finally:
        for name, handler in before.items():
            if handler is not None:
                signal.signal(getattr(signal, name), handler)


@contextmanager
def _launcher_log(path: Path) -> Iterator[None]:
    """Send what the elastic launcher logs to a file; the caller gets one line instead."""
    logger = logging.getLogger("torch.distributed.elastic")
    handler = logging.FileHandler(path, encoding="utf-8", delay=True)
    propagate = logger.propagate
    logger.addHandler(handler)
    logger.propagate = False
    try:
        yield
    finally:
        logger.propagate = propagate
        logger.removeHandler(handler)
        handler.close()
