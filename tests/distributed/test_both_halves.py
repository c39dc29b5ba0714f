"""Approximate gradients sent compressed between real processes."""

import both_halves_checks as both
import pytest
from rank_world import run_world

pytestmark = pytest.mark.timeout(300)


def test_two_ranks(tmp_path):
    checks = [
        both.both_halves_accumulate_and_restore,
        both.restored_layers_send_the_exact_gradient,
        both.checkpointing_changes_neither_gradients_nor_counts,
        both.skip_is_refused_before_the_first_step,
    ]
    run_world(2, checks, tmp_path / "store")


def test_skip_is_refused_on_a_lone_rank(tmp_path):
    """DDP would turn its missing gradient into zeros there too."""
    run_world(1, [both.skip_is_refused_before_the_first_step], tmp_path / "store")
