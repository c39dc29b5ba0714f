"""Two gloo processes: no rank waits for a gradient, and all ranks keep equal parameters."""

from __future__ import annotations

import json
import math
import os
import subprocess
import sys
from pathlib import Path

import pytest

WORKER = Path(__file__).with_name("ddp_worker.py")


@pytest.fixture(scope="module")
def ranks(tmp_path_factory):
    store = tmp_path_factory.mktemp("ddp") / "store"
    environment = {**os.environ, "GLOO_SOCKET_IFNAME": "lo", "OMP_NUM_THREADS": "1"}
    workers = [
        subprocess.Popen(
            [sys.executable, str(WORKER), str(rank), "2", str(store)],
            env=environment,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        for rank in range(2)
    ]
    try:
        outputs = [worker.communicate(timeout=90) for worker in workers]
    finally:
        for worker in workers:
            worker.kill()
    for worker, (_, errors) in zip(workers, outputs, strict=True):
        assert worker.returncode == 0, errors
    return [json.loads(out.splitlines()[-1]) for out, _ in outputs]


@pytest.mark.parametrize("run", ["zero", "zero_layer_two", "random"])
def test_ranks_hold_identical_parameters(ranks, run):
    assert ranks[0][run]["digest"] == ranks[1][run]["digest"]
    assert ranks[0][run]["step"] == 4
    assert ranks[0][run]["names"] == ["0", "2", "4"]


def test_zero_moves_biases_but_no_approximated_weight(ranks):
    # Parameters: weight and bias of the layers 0, 2, 4.
    assert ranks[0]["zero"]["moved"] == [False, True, False, True, True, True]
    assert ranks[0]["zero_layer_two"]["moved"] == [True, True, False, True, True, True]


def test_ranks_draw_independent_noise(ranks):
    # The mean of two independent N(0, 1) draws has sd 1 / sqrt(2); equal streams would give 1.
    # 144 entries: the sample sd is within 6 / sqrt(2 n) of it but for 2e-9 of the seeds.
    sd = ranks[0]["random"]["gradient_sd"] * math.sqrt(2)
    assert abs(sd - 1) < 6 / math.sqrt(2 * 144)


def test_skip_is_refused_by_name(ranks):
    for rank in ranks:
        assert rank["skip"] == (
            "layer '0': Skip() leaves no gradient to reduce over the process group of this run; "
            "use Zero() here"
        )
