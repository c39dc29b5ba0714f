"""Votes and levels that adapt, between real processes."""

import pytest
import quantizer_checks as checks
from rank_world import run_world

# Starting processes is most of the time, and slow on a busy machine.
pytestmark = pytest.mark.timeout(300)


def test_three_ranks(tmp_path):
    run_world(
        3,
        [
            checks.every_quantizer_gives_the_mean_by_hand,
            checks.signs_are_put_to_the_vote,
            checks.all_ranks_choose_the_levels_from_the_counts_of_all,
            checks.levels_are_part_of_the_state,
        ],
        tmp_path / "store",
    )
