from __future__ import annotations

import os

import pytest

from slimgrad.core.errors import WorkerError
from slimgrad.experiments.group import Group, require_equal


def test_ranks_that_differ_are_named():
    require_equal([b"a", b"a", b"a"], "parameters")
    with pytest.raises(WorkerError, match="rank 2 holds other parameters than rank 0"):
        require_equal([b"a", b"a", b"b"], "parameters")


def test_a_worker_stops_when_its_launcher_died():
    Group(0, 1).check_parent()
    Group(0, 1, os.getppid()).check_parent()
    with pytest.raises(WorkerError, match="rank 1: the launcher died"):
        Group(1, 2, os.getpid()).check_parent()
