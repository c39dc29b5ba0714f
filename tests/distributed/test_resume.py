"""Compressed runs that stop and go on, between real processes."""

import pytest
import resume_checks as resume
from rank_world import run_world

pytestmark = pytest.mark.timeout(300)


def test_two_ranks(tmp_path):
    checks = [
        resume.compressed_runs_continue_with_the_same_bits,
        resume.every_rank_keeps_a_memory_of_its_own,
    ]
    run_world(2, checks, tmp_path / "store")
