from __future__ import annotations

import pytest

from slimgrad.approx import (
    SCHEDULES,
    Alternate,
    Always,
    EveryNthLayer,
    EveryNthStep,
    Exact,
    LayerGeometry,
    Schedule,
    ScheduledLayer,
    Zero,
)
from slimgrad.core.errors import CheckpointError, ConfigError


def selected(schedule, layers, steps):
    """The (layer number, step) pairs of ``schedule`` that are not exact."""
    pairs = set()
    for number in range(1, layers + 1):
        layer = ScheduledLayer(
            f"conv{number}", number, layers, LayerGeometry("linear", (1, 1)), Zero()
        )
        for step in range(steps):
            choice = schedule.select(step, layer)
            assert choice in (Zero(), Exact())
            if choice == Zero():
                pairs.add((number, step))
    return pairs


def test_schedule_one_of_the_paper():
    layers = {number for number, _ in selected(EveryNthLayer(4, start=2), 19, 3)}
    assert layers == {2, 6, 10, 14, 18}
    assert selected(EveryNthLayer(4), 16, 2) == {(n, s) for n in (2, 6, 10, 14) for s in (0, 1)}


def test_every_layer_but_the_first():
    assert selected(EveryNthLayer(1), 4, 1) == {(2, 0), (3, 0), (4, 0)}


def test_schedule_two_of_the_paper():
    expected = {(n, s) for n in range(2, 20, 2) for s in (1, 3, 5)}
    assert selected(Alternate(layers=2, steps=2), 19, 6) == expected
    assert selected(Alternate(), 19, 6) == expected
    assert selected(Alternate(layers=3, steps=1), 7, 2) == {(3, 0), (6, 0), (3, 1), (6, 1)}


def test_schedule_three_of_the_paper():
    expected = {(n, s) for n in range(1, 20) for s in (3, 7)}
    assert selected(EveryNthStep(4), 19, 8) == expected


def test_always():
    assert len(selected(Always(), 5, 3)) == 15


@pytest.mark.parametrize(
    ("schedule", "period"),
    [(Always(), 1), (EveryNthLayer(4), 1), (Alternate(2, 3), 3), (EveryNthStep(5), 5)],
)
def test_choices_repeat_after_the_period(schedule, period):
    assert schedule.period == period
    first = selected(schedule, 6, period)
    twice = selected(schedule, 6, 2 * period)
    assert twice == first | {(number, step + period) for number, step in first}


def test_registry():
    assert list(SCHEDULES) == ["alternate", "always", "every_nth_layer", "every_nth_step"]
    assert all(SCHEDULES.get(name).name == name for name in SCHEDULES)


@pytest.mark.parametrize(
    ("make", "text"),
    [
        (lambda: EveryNthLayer(0), "EveryNthLayer: n must be an integer of at least 1, got 0"),
        (lambda: EveryNthLayer(4, start=0), "EveryNthLayer: start .* got 0"),
        (lambda: Alternate(layers=1.5), "Alternate: layers .* got 1.5"),
        (lambda: Alternate(steps=True), "Alternate: steps .* got True"),
        (lambda: EveryNthStep("4"), "EveryNthStep: n .* got '4'"),
    ],
)
def test_bad_settings_are_refused(make, text):
    with pytest.raises(ConfigError, match=text):
        make()


def test_state_names_the_schedule_and_is_checked():
    schedule = EveryNthLayer(4, start=2)
    state = schedule.state_dict()
    assert state == {"name": "every_nth_layer", "settings": {"n": 4, "start": 2}}
    EveryNthLayer(4).load_state_dict(state)
    with pytest.raises(CheckpointError, match=r"'n': 4.*'n': 3"):
        EveryNthLayer(3).load_state_dict(state)


def test_a_schedule_of_ones_own_needs_only_select():
    class First(Schedule):
        name = "first"

        def select(self, step, layer):
            return layer.estimator if layer.number == 1 else Exact()

    assert First().period is None
    assert First().state_dict() == {"name": "first", "settings": {}}
    assert selected(First(), 3, 2) == {(1, 0), (1, 1)}
