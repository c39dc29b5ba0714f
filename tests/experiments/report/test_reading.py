from __future__ import annotations

import re

import pytest
import sample_records as samples

from slimgrad.experiments.report.reading import Reading, overall, readings
from slimgrad.experiments.summary import Summary, summarize_records

Triple = tuple[float, float, float]
ACCURACY = {1: 0.96, 2: 0.97, 3: 0.98}
SECONDS = {1: 10.0, 2: 10.1, 3: 9.9}
# Words that claim a difference.
CLAIMS = re.compile(r"\b(less time|more time|shorter|longer|higher|lower|yes)\b")


def _summary(
    accuracy: tuple[float, float, float],
    seconds: tuple[float, float, float],
    method: str = "topone",
) -> Summary:
    """Exact beside one method whose accuracy and time differ from it by these amounts a seed."""
    records = samples.records(("exact", method), (1, 2, 3))
    for record in records:
        if record["kind"] == "result":
            seed = record["seed"]
            mine = record["method"] == method
            record["final_accuracy"] = ACCURACY[seed] + mine * accuracy[seed - 1]
            record["total_seconds"] = SECONDS[seed] + mine * seconds[seed - 1]
    return summarize_records(records)


def _read(
    accuracy: tuple[float, float, float],
    seconds: tuple[float, float, float],
    method: str = "topone",
) -> Reading:
    (reading,) = readings(_summary(accuracy, seconds, method))
    return reading


NOTHING_SHOWN = (0.001, -0.002, 0.0005)
WORSE = (-0.010, -0.011, -0.012)
BETTER = (0.010, 0.011, 0.012)
FASTER = (-1.0, -1.1, -1.2)
SLOWER = (1.0, 1.1, 1.2)
NO_TIME = (0.3, -0.2, 0.05)


def test_no_winner_is_named_while_the_intervals_contain_zero() -> None:
    reading = _read(NOTHING_SHOWN, NO_TIME)
    assert (reading.headline, reading.tone) == ("Not shown to pay here", "open")
    assert "No difference in final accuracy was shown" in reading.text
    assert "No difference in training time was shown" in reading.text
    assert not CLAIMS.search(reading.text)
    assert not CLAIMS.search(reading.pays)
    assert reading.pays.startswith("Not shown:")


def test_a_loss_that_cannot_be_ruled_out_is_said_with_its_size() -> None:
    # Differences +0.1, -0.2, +0.05 points: mean -0.0167, sd 0.1607, half width 0.3993.
    assert "A loss of 0.42 points is still compatible" in _read(NOTHING_SHOWN, NO_TIME).text


def test_time_saved_without_a_shown_cost() -> None:
    reading = _read(NOTHING_SHOWN, FASTER)
    assert (reading.headline, reading.tone) == ("Saves time here", "good")
    assert "11.0\u00a0% less time" in reading.text
    assert "throughput gain of 12.4\u00a0%" in reading.text
    assert "no cost in final accuracy was shown" in reading.pays
    assert "0.42 points cannot be ruled out" in reading.pays


def test_time_saved_with_higher_accuracy() -> None:
    reading = _read(BETTER, FASTER)
    assert "higher than with exact: +1.10 points" in reading.text
    assert "final accuracy was higher as well" in reading.pays


def test_time_saved_at_a_shown_cost_is_a_trade() -> None:
    reading = _read(WORSE, FASTER)
    assert (reading.headline, reading.tone) == ("Saves time, costs accuracy", "open")
    assert "lower than with exact: −1.10 points" in reading.text
    assert "exact training shortened by the same 11.0\u00a0%" in reading.pays


def test_time_saved_with_accuracy_that_cannot_be_judged() -> None:
    reading = _read((-0.01, -0.01, -0.01), FASTER)
    assert reading.headline == "Saves time; accuracy open"
    assert "cannot be judged, because all seeds differ by the same amount" in reading.pays
    assert "so this may be chance" in reading.text


def test_more_time_does_not_pay_and_fewer_bits_are_no_excuse() -> None:
    reading = _read(NOTHING_SHOWN, SLOWER, "nuqsgd")
    assert (reading.headline, reading.tone) == ("Takes longer here", "bad")
    assert "11.0\u00a0% more time" in reading.text
    assert "throughput loss of 9.9\u00a0%" in reading.text
    assert "4.06 bits per component, not 32.00" in reading.text
    assert "Fewer bits can pay on a link slower" in reading.pays
    assert "does not show that" in reading.pays


def test_more_time_for_more_accuracy() -> None:
    reading = _read(BETTER, SLOWER)
    assert "Final accuracy did rise, by 1.10 points" in reading.pays
    assert "Fewer bits" not in reading.pays


def test_no_time_saved_at_a_shown_cost() -> None:
    reading = _read(WORSE, NO_TIME)
    assert (reading.headline, reading.tone) == ("Not shown to pay here", "bad")
    assert "It also cost 1.10 points" in reading.pays


def test_one_seed_concludes_nothing() -> None:
    summary = summarize_records(samples.records(seeds=(1,)))
    assert "too few finished seeds" in overall(summary)
    for reading in readings(summary):
        assert (reading.headline, reading.tone) == ("Cannot be judged", "open")
        assert not CLAIMS.search(reading.text + reading.pays)
        assert "one seed gives no interval" in reading.text


def test_unfinished_methods_are_not_judged() -> None:
    records = [samples.session(("exact", "topone"), (1, 2)), *samples.run_records("exact", 1)]
    (reading,) = readings(summarize_records(records))
    assert reading.headline == "Cannot be judged"
    assert "No seed finished on both sides" in reading.text
    assert "Training times cannot be compared" in reading.text


@pytest.mark.parametrize(
    ("share", "sentence"),
    [
        (0.262, "It skipped 26.2\u00a0% of the weight-gradient multiply-adds."),
        (-0.5, "It spent 50.0\u00a0% more weight-gradient multiply-adds."),
        (0.0, "It saved neither weight-gradient multiply-adds nor bits."),
    ],
)
def test_savings_are_told_as_they_are(share: float, sentence: str) -> None:
    records = samples.records(("exact", "topone"), (1, 2))
    for record in records:
        if record["kind"] == "result" and record["method"] == "topone":
            record["saved_macs_share"] = share
    assert sentence in readings(summarize_records(records))[0].text


def test_overall_names_what_differs_in_which_direction_and_warns_of_many_intervals() -> None:
    text = overall(summarize_records(samples.records()))
    assert (
        "Compared with exact: training time was shorter with topone and topone+nuqsgd and longer "
        "with nuqsgd, by more than chance explains; final accuracy was lower with topone+nuqsgd, by"
    ) in text
    assert "one in twenty" in text
    text = overall(_summary(NOTHING_SHOWN, NO_TIME))
    assert "no difference in training time was shown for any method" in text
    assert "no difference in final accuracy was shown for any method" in text
    assert not CLAIMS.search(text)


def test_overall_without_anything_to_compare() -> None:
    assert "no exact run" in overall(summarize_records(samples.records(("topone",), (1, 2))))
    alone = summarize_records(samples.records(("exact",), (1, 2)))
    assert "nothing to compare it with" in overall(alone)
    assert readings(alone) == []
    assert readings(summarize_records(samples.records(("topone",), (1, 2)))) == []
