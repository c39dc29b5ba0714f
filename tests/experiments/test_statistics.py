from __future__ import annotations

import math
import random

import pytest

from slimgrad.core.errors import ConfigError
from slimgrad.experiments.statistics import (
    Estimate,
    compare_times,
    estimate,
    paired_difference,
    spread,
    student_t,
)


def test_spread_uses_n_minus_one() -> None:
    found = spread([2.0, 4.0, 4.0, 6.0])
    assert found.mean == 4.0
    assert found.sd == pytest.approx(math.sqrt(8 / 3))


def test_spread_of_nothing_is_an_error() -> None:
    with pytest.raises(ConfigError, match="at least one finished run"):
        spread([])


# Critical values as printed in tables of Student's t, two-sided 5 %.
@pytest.mark.parametrize(("degrees", "value"), [(1, 12.706), (2, 4.303), (4, 2.776), (29, 2.045)])
def test_student_t_is_the_tabulated_value(degrees: int, value: float) -> None:
    assert student_t(degrees) == pytest.approx(value, abs=5e-4)


def test_interval_by_hand_that_contains_zero() -> None:
    # Differences 1, 2, 3: mean 2, sd 1, half width 4.3027 / sqrt(3) = 2.4841.
    found = paired_difference({0: 11, 1: 22, 2: 33}, {0: 10, 1: 20, 2: 30})
    assert found is not None
    assert (found.n, found.mean, found.sd) == (3, 2, 1)
    assert found.low == pytest.approx(-0.4841, abs=1e-4)
    assert found.high == pytest.approx(4.4841, abs=1e-4)
    assert found.verdict("higher") == "no difference shown"
    assert found.verdict("lower") == "no difference shown"


def test_interval_by_hand_that_excludes_zero() -> None:
    # Differences 2, 2.5, 3: sd 0.5, half width 1.2421.
    found = paired_difference({0: 12, 1: 22.5, 2: 33}, {0: 10, 1: 20, 2: 30})
    assert found is not None
    assert found.low == pytest.approx(1.2579, abs=1e-4)
    assert found.verdict("higher") == "better"
    assert found.verdict("lower") == "worse"


def test_only_common_seeds_are_paired() -> None:
    found = paired_difference({0: 1.0, 1: 5.0, 9: 100.0}, {0: 0.0, 1: 3.0, 7: -100.0})
    assert found is not None
    assert (found.n, found.mean) == (2, 1.5)


def test_one_seed_gives_no_interval_and_no_verdict() -> None:
    found = paired_difference({3: 0.9}, {3: 0.5})
    assert found is not None
    assert (found.sd, found.low, found.high) == (None, None, None)
    assert found.no_interval_reason == "one seed gives no interval"
    assert found.verdict("higher") == "no difference shown"


def test_equal_measured_differences_give_no_interval() -> None:
    # 0.9 - 0.8 and 0.8 - 0.7 differ in the last bits only: not a spread to judge by.
    found = paired_difference({0: 0.9, 1: 0.8}, {0: 0.8, 1: 0.7})
    assert found is not None
    assert found.low is None
    assert "no spread" in found.no_interval_reason
    assert found.verdict("higher") == "no difference shown"


@pytest.mark.parametrize("seeds", [1, 3])
def test_equal_counted_differences_are_certain(seeds: int) -> None:
    found = paired_difference(
        dict.fromkeys(range(seeds), 4.0625), dict.fromkeys(range(seeds), 32.0), counted=True
    )
    assert found is not None
    assert (found.low, found.high) == (-27.9375, -27.9375)
    assert found.verdict("lower") == "better"


def test_equal_counts_show_no_difference() -> None:
    found = paired_difference({0: 32.0, 1: 32.0}, {0: 32.0, 1: 32.0}, counted=True)
    assert found is not None
    assert found.verdict("lower") == "no difference shown"


def test_an_interval_that_ends_at_zero_shows_nothing() -> None:
    assert Estimate(3, 1.0, 1.0, 0.0, 2.0).verdict("higher") == "no difference shown"


def test_times_by_hand() -> None:
    # Ratios 1/2 and 1/8: mean log ratio -ln 4; sd ln 4 / sqrt(2); half width 12.706 ln 2.
    found = compare_times({0: 5.0, 1: 2.5}, {0: 10.0, 1: 20.0})
    assert found is not None
    assert found.time_saved.mean == pytest.approx(0.75)
    assert found.throughput_gain.mean == pytest.approx(3.0)
    half = 12.7062 * math.log(2)
    assert found.time_saved.low == pytest.approx(1 - math.exp(-math.log(4) + half), rel=1e-4)
    assert found.time_saved.high == pytest.approx(1 - math.exp(-math.log(4) - half), rel=1e-4)
    assert found.time_saved.sd == pytest.approx(spread([0.5, 0.875]).sd)
    assert found.throughput_gain.sd == pytest.approx(spread([1.0, 7.0]).sd)


def test_both_forms_of_a_time_are_one_result() -> None:
    found = compare_times({0: 9.0, 1: 8.8, 2: 9.3}, {0: 10.0, 1: 10.1, 2: 10.0})
    assert found is not None
    saved, gain = found.time_saved, found.throughput_gain
    assert saved.excludes_zero
    assert gain.excludes_zero
    for one, other in ((saved.mean, gain.mean), (saved.low, gain.low), (saved.high, gain.high)):
        assert one is not None
        assert other is not None
        assert (1 - one) * (1 + other) == pytest.approx(1)


def test_times_without_a_common_seed_are_not_compared() -> None:
    assert compare_times({0: 1.0}, {1: 1.0}) is None


def test_one_pair_of_times_gives_no_interval() -> None:
    found = compare_times({0: 5.0}, {0: 10.0})
    assert found is not None
    assert (found.time_saved.mean, found.time_saved.low) == (0.5, None)
    assert found.time_saved.sd is None


@pytest.mark.parametrize("wrong", [0.0, -1.0, math.nan, math.inf])
def test_times_must_be_positive(wrong: float) -> None:
    with pytest.raises(ConfigError, match="must be > 0 seconds"):
        compare_times({4: 1.0}, {4: wrong})


def test_interval_covers_the_truth_as_often_as_it_claims() -> None:
    # 4,000 draws of 3 seeds: coverage has sd sqrt(0.95 * 0.05 / 4000) = 0.0034; 5 sd on either
    # side give a false alarm with probability 6e-7.
    draw = random.Random(5)
    covered = 0
    for _ in range(4000):
        found = estimate([draw.gauss(1.0, 2.0) for _ in range(3)])
        assert found.low is not None
        assert found.high is not None
        covered += found.low <= 1.0 <= found.high
    assert covered / 4000 == pytest.approx(0.95, abs=5 * 0.00345)
