"""``slimgrad theory budget``: whether approximating weight gradients saves time, and how much."""

from __future__ import annotations

from typing import Annotated

from slimgrad.cli.output import FLAG
from slimgrad.cli.theory.answer import Answer
from slimgrad.cli.theory.configuration import parse_numbers


def budget(
    *,
    added_variances: str,
    layer_seconds: str,
    other_seconds: float,
    batch_size: float | None = None,
    noise_scale: float | None = None,
    json: Annotated[bool, FLAG] = False,
) -> int:
    """Which share of each layer's weight gradient to compute, and whether it pays.

    Args:
        added_variances: For each layer the variance that computing half of it adds, in units of
            the mini-batch noise, separated by commas.
        layer_seconds: For each layer the seconds of its exact weight gradient.
        other_seconds: Seconds of the rest of a step.
        batch_size: Samples a step; with --noise-scale.
        noise_scale: Gradient noise scale in samples; without it all added noise costs steps.
        json: Print JSON on stdout and nothing else there.
    """
    from slimgrad import theory
    from slimgrad.core.errors import ConfigError

    if (batch_size is None) != (noise_scale is None):
        raise ConfigError("give --batch-size and --noise-scale together, or neither")
    share = 1.0
    if batch_size is not None and noise_scale is not None:
        share = theory.noise_share(batch_size, noise_scale)
    variances = parse_numbers("--added-variances", added_variances)
    seconds = parse_numbers("--layer-seconds", layer_seconds)
    found = theory.best_rates(variances, seconds, other_seconds, noise=share)
    exact = other_seconds + sum(seconds)
    answer = Answer(
        f"{len(seconds)} layers, {exact:.4g} s a step when exact",
        assumptions=(
            "estimators are unbiased, and their variance grows as 1 / share - 1",
            "added noise and mini-batch noise cost steps alike",
        ),
    )
    answer.add("noise_share", "part of the added noise that costs steps", share)
    answer.add("rates", "share to compute, by layer", found.rates)
    answer.add("step_seconds", "seconds a step", found.step_seconds)
    answer.add("added_variance", "noise added, mini-batch noise is 1", found.added_variance)
    answer.add("time_ratio", "time to the same accuracy, exact is 1", found.time_ratio)
    pays = found.time_ratio < 1
    answer.add("pays", "pays", pays, "" if pays else "leave every layer exact")
    return answer.show(json=json)
