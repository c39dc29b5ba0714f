"""The result in plain language: what was shown, what was saved, and whether it pays.

A method is never called better or worse where its interval contains zero.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from slimgrad.experiments.report.cells import percent, plain, signed, unit_of
from slimgrad.experiments.statistics import Estimate, Verdict
from slimgrad.experiments.summary import QUANTITIES, MethodSummary, QuantitySummary, Summary

Tone = Literal["good", "bad", "open"]
_BY_NAME = {quantity.name: quantity for quantity in QUANTITIES}


@dataclass(frozen=True)
class Reading:
    """One method in words.

    Attributes:
        method: its name.
        headline: the answer to "does it pay?" in a few words.
        tone: "good" or "bad" for an answer that was shown, "open" for one that was not.
        text: what was measured, with the numbers.
        pays: the answer with its reasons and limits.
    """

    method: str
    headline: str
    tone: Tone
    text: str
    pays: str


def overall(summary: Summary) -> str:
    """What the comparison as a whole shows, in a few sentences."""
    if summary.reference is None:
        return "There is no exact run in this comparison, so nothing can be said about differences."
    others = [method for method in summary.methods if not method.is_reference]
    if not others:
        return f"Only {summary.reference} was run: there is nothing to compare it with."
    if not any(_has_interval(method) for method in others):
        return (
            f"There are too few finished seeds for intervals: differences from {summary.reference} "
            "cannot be told from chance. Run at least three seeds."
        )
    sentences = [
        _differences(others, "total_seconds", "training time", "shorter", "longer"),
        _differences(others, "final_accuracy", "final accuracy", "higher", "lower"),
    ]
    return (
        f"Compared with {summary.reference}: {'; '.join(sentences)}. Each interval is a "
        "95 % interval on its own: about one in twenty excludes zero by chance even where there is "
        "no difference."
    )


def _differences(
    methods: list[MethodSummary], quantity: str, title: str, better: str, worse: str
) -> str:
    """Which methods were shown to differ in one quantity, and in which direction."""
    parts = []
    for verdict, words in (("better", better), ("worse", worse)):
        names = [method.name for method in methods if _verdict(method, quantity) == verdict]
        if names:
            parts.append(f"{words} with {_join(names)}")
    if not parts:
        return f"no difference in {title} was shown for any method"
    return f"{title} was {' and '.join(parts)}, by more than chance explains"


def readings(summary: Summary) -> list[Reading]:
    """One reading for each method that was compared with the exact run."""
    if summary.reference is None:
        return []
    return [read(summary, method) for method in summary.methods if not method.is_reference]


def read(summary: Summary, method: MethodSummary) -> Reading:
    """What the comparison shows about ``method``."""
    reference = summary.reference or "exact"
    accuracy = method.quantities["final_accuracy"]
    total = method.quantities["total_seconds"]
    sentences = [
        _accuracy_sentence(accuracy, reference),
        _time_sentence(total, reference),
        _saved_sentence(summary, method),
    ]
    headline, tone, pays = _does_it_pay(method)
    text = " ".join(sentence for sentence in sentences if sentence)
    return Reading(method.name, headline, tone, text, pays)


def _accuracy_sentence(found: QuantitySummary, reference: str) -> str:
    effect = found.difference
    if effect is None:
        return "No seed finished on both sides, so accuracy cannot be compared."
    points = f"{signed(effect.mean * 100, 2)} points"
    if effect.low is None or effect.high is None:
        return (
            f"Final accuracy minus that of {reference}: {points}; {effect.no_interval_reason}, "
            "so this may be chance."
        )
    interval = f"95 % interval {signed(effect.low * 100, 2)} to {signed(effect.high * 100, 2)}"
    paired = f"{interval}, {effect.n} paired seeds"
    if effect.excludes_zero:
        word = "higher" if effect.mean > 0 else "lower"
        return (
            f"Final accuracy was {word} than with {reference}: {points} ({paired}), more than "
            "chance explains."
        )
    return (
        f"No difference in final accuracy was shown: {points} ({paired}). A loss of "
        f"{plain(-effect.low * 100, 2)} points is still compatible with these runs."
    )


def _time_sentence(found: QuantitySummary, reference: str) -> str:
    if found.time is None:
        return "Training times cannot be compared."
    saved, gain = found.time.time_saved, found.time.throughput_gain
    if saved.low is None or saved.high is None:
        return (
            f"Training time saved beside {reference}: {_percent(saved.mean)}; "
            f"{saved.no_interval_reason}, so this may be chance."
        )
    interval = f"95 % interval {_percent(saved.low)} to {_percent(saved.high)}"
    if not saved.excludes_zero:
        return f"No difference in training time was shown: {_percent(saved.mean)} ({interval})."
    if saved.mean > 0:
        return (
            f"Training took {_percent(saved.mean)} less time ({interval}), a throughput gain of "
            f"{_percent(gain.mean)}."
        )
    ends = f"{_percent(-saved.high)} to {_percent(-saved.low)}"
    return (
        f"Training took {_percent(-saved.mean)} more time (95 % interval {ends}), "
        f"a throughput loss of {_percent(-gain.mean)}."
    )


def _saved_sentence(summary: Summary, method: MethodSummary) -> str:
    parts = []
    macs = method.quantities["saved_macs_share"].spread
    if macs is not None and round(macs.mean, 4) > 0:
        parts.append(f"skipped {_percent(macs.mean)} of the weight-gradient multiply-adds")
    elif macs is not None and round(macs.mean, 4) < 0:
        parts.append(f"spent {_percent(-macs.mean)} more weight-gradient multiply-adds")
    bits = _bits(summary, method)
    if bits is not None and round(bits[0], 2) != round(bits[1], 2):
        unit = unit_of(_BY_NAME["bits_per_component"], summary)
        own, exact = (plain(value * unit.factor, unit.decimals) for value in bits)
        parts.append(f"sent {own} bits per component, not {exact}")
    if not parts:
        return "It saved neither weight-gradient multiply-adds nor bits."
    return f"It {' and '.join(parts)}."


def _bits(summary: Summary, method: MethodSummary) -> tuple[float, float] | None:
    own = method.quantities["bits_per_component"].spread
    if own is None or summary.reference is None:
        return None
    exact = summary.method(summary.reference).quantities["bits_per_component"].spread
    return None if exact is None else (own.mean, exact.mean)


def _does_it_pay(method: MethodSummary) -> tuple[str, Tone, str]:
    time = method.quantities["total_seconds"].effect
    accuracy = method.quantities["final_accuracy"].effect
    if time is None or accuracy is None or time.low is None:
        reason = "the seeds that finished on both sides do not carry an interval for training time"
        return "Cannot be judged", "open", f"Cannot be judged: {reason}."
    time_verdict = _verdict(method, "total_seconds")
    accuracy_verdict = _verdict(method, "final_accuracy")
    if time_verdict == "better":
        return _pays_in_time(time, accuracy, accuracy_verdict)
    gain = ""
    if accuracy_verdict == "better":
        gain = f" Final accuracy did rise, by {plain(accuracy.mean * 100, 2)} points."
    loss = ""
    if accuracy_verdict == "worse":
        loss = f" It also cost {plain(-accuracy.mean * 100, 2)} points of final accuracy."
    slower_link = ""
    if _verdict(method, "bits_per_component") == "better":
        slower_link = (
            " Fewer bits can pay on a link slower than the one used here; this comparison does "
            "not show that."
        )
    if time_verdict == "worse":
        text = "Not in time, on this network, machine and link: training took longer."
        headline = "Takes longer here"
        tone: Tone = "bad"
    else:
        text = (
            "Not shown: on this network, machine and link, what it saves did not shorten training "
            "by more than chance explains."
        )
        headline, tone = "Not shown to pay here", "bad" if loss else "open"
    return headline, tone, text + loss + gain + slower_link


def _pays_in_time(
    time: Estimate, accuracy: Estimate, verdict: Verdict | None
) -> tuple[str, Tone, str]:
    if verdict == "worse":
        return (
            "Saves time, costs accuracy",
            "open",
            f"A trade: {_percent(time.mean)} of the training time for "
            f"{plain(-accuracy.mean * 100, 2)} points of accuracy. Before taking it, compare with "
            f"exact training shortened by the same {_percent(time.mean)}.",
        )
    if accuracy.low is None:
        return (
            "Saves time; accuracy open",
            "open",
            "In time, yes, on this network, machine and link; whether it costs accuracy cannot be "
            f"judged, because {accuracy.no_interval_reason}.",
        )
    if verdict == "better":
        cost = "and final accuracy was higher as well"
    else:
        cost = (
            "and no cost in final accuracy was shown, although one of up to "
            f"{plain(-accuracy.low * 100, 2)} points cannot be ruled out"
        )
    text = f"In time, yes, on this network, machine and link: training was shorter, {cost}."
    return "Saves time here", "good", text


def _verdict(method: MethodSummary, name: str) -> Verdict | None:
    return method.quantities[name].verdict(_BY_NAME[name])


def _has_interval(method: MethodSummary) -> bool:
    effects = (method.quantities[name].effect for name in ("final_accuracy", "total_seconds"))
    return any(effect is not None and effect.low is not None for effect in effects)


def _percent(share: float) -> str:
    return f"{percent(share)}\u00a0%"  # a number and its unit stay on one line


def _join(names: list[str]) -> str:
    return names[0] if len(names) == 1 else f"{', '.join(names[:-1])} and {names[-1]}"
