"""Runs in several processes: dying workers, resuming, joining a launch of torchrun."""

from __future__ import annotations

import json
import logging
import os
import re
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from pathlib import Path

import pytest
import torch.distributed as dist
from torch.distributed.elastic.multiprocessing.api import SignalException
from torch.distributed.elastic.multiprocessing.errors import ProcessFailure
from torch.distributed.launcher import api

from slimgrad.core.errors import ConfigError, WorkerError
from slimgrad.experiments import checkpoint, session
from slimgrad.experiments.config import TrainConfig
from slimgrad.experiments.launch import failure_message, joined_launch, launch, threads_per_worker
from slimgrad.experiments.plan import checkpoint_path
from slimgrad.experiments.records import read_records
from slimgrad.experiments.session import prepare
from slimgrad.experiments.train import train

BOTH_HALVES = {
    "name": "both",
    "estimator": "topone",
    "schedule": "every_nth_layer:n=4,start=2",
    "quantizer": "topk:keep=0.1",
    "values": "nuqsgd:bits=4,bucket_size=64",
    "feedback": "error:decay=0.9",
}
TORCHRUN_PROGRAM = """
import sys
from slimgrad.experiments.config import TrainConfig
from slimgrad.experiments.train import train
outcome = train(TrainConfig.model_validate_json(sys.argv[1]))
found = None if outcome is None else outcome.results[0]["parameters_sha256"]
sys.stdout.write(f"outcome {found}\\n")  # one write: two processes share the pipe
"""


def failure(folder: Path, exitcode: int, message: str | None = None, rank: int = 0):
    file = folder / f"rank{rank}.error.json"
    if message is not None:
        file.write_text(
            json.dumps({"message": {"message": message, "extraInfo": {"timestamp": 1}}})
        )
    return ProcessFailure(local_rank=rank, pid=1, exitcode=exitcode, error_file=str(file))


@pytest.mark.parametrize("reversed_order", [False, True])
def test_the_cause_is_named_not_its_consequences(tmp_path: Path, reversed_order: bool):
    lost = "RuntimeError: [third_party/gloo/transport/tcp/pair.cc:538] Connection closed by peer"
    failures = {
        0: failure(tmp_path, 1, lost, 0),
        1: failure(tmp_path, -signal.SIGTERM, None, 1),
        2: failure(tmp_path, -signal.SIGKILL, None, 2),
    }
    if reversed_order:
        failures = dict(reversed(failures.items()))
    assert failure_message(failures, 3, tmp_path) == (
        "rank 2 of 3 failed: killed by SIGKILL (signal 9); the other workers were stopped; "
        f"log: {tmp_path / 'rank2.stderr.log'}; "
        "once the cause is gone, --resume takes the run up again"
    )


def test_the_exception_of_a_worker_is_quoted(tmp_path: Path):
    failures = {
        0: failure(tmp_path, -signal.SIGTERM, None, 0),
        1: failure(tmp_path, 1, "ValueError: too\nmuch", 1),
    }
    message = failure_message(failures, 2, tmp_path)
    assert message.startswith("rank 1 of 2 failed: ValueError: too; the other workers")


def test_a_worker_that_left_no_exception_is_quoted_from_its_log(tmp_path: Path):
    failures = {0: failure(tmp_path, 3)}
    assert "rank 0 of 1 failed: exit code 3;" in failure_message(failures, 1, tmp_path)
    (tmp_path / "rank0.stderr.log").write_text("first\nout of memory\n\n")
    assert "failed: out of memory;" in failure_message(failures, 1, tmp_path)


def test_a_launch_of_something_else_is_recognised():
    assert joined_launch({"RANK": "3", "WORLD_SIZE": "4"}) == (3, 4)
    assert joined_launch({"RANK": "3"}) is None
    with pytest.raises(ConfigError, match="RANK='x' and WORLD_SIZE='4': both must be integers"):
        joined_launch({"RANK": "x", "WORLD_SIZE": "4"})


@pytest.mark.usefixtures("launch_of_one")
@pytest.mark.parametrize(
    ("text", "error", "message"),
    [
        ("[gloo/pair.cc:5] Connection closed by peer", WorkerError, "rank 0 of 1 stopped because"),
        ("something of its own", RuntimeError, "something of its own"),
    ],
)
def test_a_rank_of_a_joined_launch_that_lost_another_says_no_more_than_that(
    tiny_config, monkeypatch: pytest.MonkeyPatch, text: str, error: type, message: str
):
    def fail(*arguments):
        raise RuntimeError(text)

    monkeypatch.setattr(session, "execute", fail)
    with pytest.raises(error, match=message):
        train(tiny_config())
    assert not dist.is_initialized()


def test_cores_are_divided_among_workers():
    assert threads_per_worker(10_000) == 1
    assert threads_per_worker(1) >= 1
    assert threads_per_worker(1, threads=5) == 5


def wait_for(condition: Callable[[], bool], seconds: float = 60) -> None:
    deadline = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < deadline, "waited too long"
        time.sleep(0.01)


def recorded_steps(config: TrainConfig) -> int:
    file = config.out / "records.jsonl"
    records = read_records(file) if file.exists() else []
    return max([record.get("step", 0) for record in records], default=0)


def worker_pid(config: TrainConfig, rank: int) -> int:
    text = (config.out / "logs" / f"rank{rank}.stdout.log").read_text()
    found = re.search(r"process (\d+)", text)
    assert found is not None
    return int(found[1])


def is_alive(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    return True


def run_under_torchrun(config: TrainConfig, program: Path) -> str:
    """SHA-256 of the parameters of a run that two processes of torchrun did together."""
    program.write_text(TORCHRUN_PROGRAM)
    command = [sys.executable, "-m", "torch.distributed.run", "--standalone", "--nproc-per-node=2"]
    environment = os.environ | {"OMP_NUM_THREADS": "1", "GLOO_SOCKET_IFNAME": "lo"}
    done = subprocess.run(
        [*command, str(program), config.model_dump_json()],
        env=environment,
        capture_output=True,
        text=True,
        timeout=110,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    outcomes = re.findall(r"outcome (\w+)", done.stdout)
    assert sorted(outcomes, key=len)[0] == "None"
    return max(outcomes, key=len)


def test_a_killed_worker_stops_the_others_and_the_run_resumes_to_the_same_bits(
    tiny_config, tmp_path: Path, capfd: pytest.CaptureFixture[str]
):
    settings = {
        "method": BOTH_HALVES,
        "model": "cnn2:width=16",
        "epochs": 6,
        "checkpoint_every": 7,
        "progress_every": 1,
    }
    # One worker is configured: the two of torchrun take its place.
    whole = run_under_torchrun(tiny_config(out=tmp_path / "whole", **settings), tmp_path / "p.py")
    config = tiny_config(workers=2, **settings)
    killed: list[float] = []
    survivor: list[int] = []

    def kill_one_worker() -> None:
        wait_for(lambda: recorded_steps(config) > 8)
        survivor.append(worker_pid(config, 0))
        killed.append(time.monotonic())
        os.kill(worker_pid(config, 1), signal.SIGKILL)

    killer = threading.Thread(target=kill_one_worker)
    killer.start()
    capfd.readouterr()
    handler = signal.getsignal(signal.SIGTERM)
    with pytest.raises(WorkerError) as caught:
        train(config)
    stopped = time.monotonic()
    killer.join()
    # The promise of 30 seconds, not a measurement: a worker that nobody stops would run on.
    assert stopped - killed[0] < 30
    assert not is_alive(survivor[0])
    assert str(caught.value).startswith("rank 1 of 2 failed: killed by SIGKILL (signal 9);")
    assert "\n" not in str(caught.value)
    assert capfd.readouterr() == ("", "")
    assert signal.getsignal(signal.SIGTERM) is handler
    assert logging.getLogger("torch.distributed.elastic").propagate
    assert "GLOO_SOCKET_IFNAME" not in os.environ

    step = checkpoint.load(checkpoint_path(config)).step
    assert step >= 7
    assert step % 7 == 0
    assert step < 48
    resumed = train(config.replace(resume=True))
    assert resumed.results[0]["steps"] == 48
    assert resumed.results[0]["parameters_sha256"] == whole
    assert 0.5 < resumed.results[0]["bits_per_component"] < 8
    assert 0 < resumed.results[0]["saved_macs_share"] < 1


@pytest.mark.parametrize(
    ("number", "error", "code"),
    [(signal.SIGINT, KeyboardInterrupt, None), (signal.SIGTERM, SystemExit, 143)],
)
def test_a_signal_to_the_launcher_ends_it_the_usual_way(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, number, error, code
):
    def stopped(config, entrypoint):
        def start(*arguments):
            raise SignalException("stopped", number)

        return start

    monkeypatch.setattr(api, "elastic_launch", stopped)
    with pytest.raises(error) as caught:
        launch(tmp_path / "plan.json", 2, 1, tmp_path / "logs")
    assert getattr(caught.value, "code", None) == code


def test_an_exception_in_a_worker_is_told_in_one_line(
    tiny_config, tmp_path: Path, capfd: pytest.CaptureFixture[str]
):
    config = tiny_config()
    plan = prepare("train", config, [config])
    plan.dataset.write_bytes(b"damaged")
    plan.write(tmp_path / "plan.json")
    with pytest.raises(WorkerError, match=r"^rank 0 of 1 failed: DataError: the cached images"):
        launch(tmp_path / "plan.json", 1, 1, tmp_path / "logs")
    assert capfd.readouterr() == ("", "")
    # Either rank may be the first to fail; the other is stopped and may have written nothing.
    logs = (tmp_path / "logs").glob("rank*.stderr.log")
    assert any("Traceback" in log.read_text() for log in logs)
