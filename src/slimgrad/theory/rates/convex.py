"""Steps and bits of quantized SGD on a smooth convex function."""

from __future__ import annotations

import math
from functools import partial

from slimgrad.theory.rates.arguments import count, non_negative, positive
from slimgrad.theory.rates.gradients import (
    NO_RANK_VARIANCE,
    NO_VARIANCE,
    Noise,
    QuantizedGradients,
    checked_noise,
)
from slimgrad.theory.rates.record import Question, Rate
from slimgrad.theory.rates.search import TOO_MANY, fewest_steps, searched_step


def convex_step_size(steps: int, *, smoothness: float, distance: float, variance: float) -> float:
    """The constant step 1 / (beta + s sqrt(T) / R) of ``convex_gap_bound``; arguments as there.

    >>> convex_step_size(100, smoothness=1.0, distance=1.0, variance=1.0) == 1 / 11
    True
    """
    noise = math.sqrt(variance) * math.sqrt(steps) / distance
    return 1 / (smoothness + noise)


def convex_gap_bound(steps: int, *, smoothness: float, distance: float, variance: float) -> float:
    """Bound on the gap of T steps of SGD: R s / sqrt(T) + beta R^2 / (2 T).

    Guarantee: for a convex f with beta-Lipschitz gradient and unbiased gradients of variance at
    most s^2, w_{t+1} = w_t - g_t / (beta + s sqrt(T) / R) gives E f(mean of w_1 ... w_T) - f*
    at most this.

    Args:
        steps: T >= 1.
        smoothness: beta, Lipschitz constant of the gradient.
        distance: R >= ||w_0 - w*||.
        variance: s^2, bound on the variance of the gradient that is applied.

    Raises:
        ConfigError: a number out of range.

    >>> convex_gap_bound(100, smoothness=2.0, distance=1.0, variance=1.0)
    0.11

    References:
        Bubeck (2015), Theorem 6.3, for the Euclidean norm; Ramezani-Kebrya et al. (2021),
        Theorem 6, gives the order of growth.
    """
    steps, beta = count("steps", steps), positive("smoothness", smoothness)
    radius, spread = positive("distance", distance), math.sqrt(non_negative("variance", variance))
    return radius * spread / math.sqrt(steps) + beta * radius**2 / (2 * steps)


def convex_relative_gap_bound(
    steps: int,
    step_size: float,
    *,
    smoothness: float,
    distance: float,
    variance: float,
    relative_variance: float,
    world_size: int,
) -> float:
    """Bound on the gap of T steps of quantized SGD whose gradients need not be bounded.

    (R^2 / (a T) + a (1 + eps) s1^2 / W) / (2 - 2 a beta (1 + eps / W)).

    Guarantee: for a convex f with beta-Lipschitz gradient, E f(mean of w_0 ... w_{T-1}) - f* is at
    most this for a beta (1 + eps / W) < 1; infinite otherwise. It follows from the distance to a
    minimum with E||mean Q(g)||^2 <= (1 + eps / W) ||grad f||^2 + (1 + eps) s1^2 / W and
    ||grad f||^2 <= 2 beta (f - f*).

    Args:
        steps: T >= 1.
        step_size: a > 0.
        smoothness: beta, Lipschitz constant of the gradient.
        distance: R >= ||w_0 - w*||.
        variance: s1^2, bound on the variance of the gradient of one rank before quantization.
        relative_variance: eps of the quantizer.
        world_size: number of ranks W.

    Raises:
        ConfigError: a number out of range.

    >>> convex_relative_gap_bound(100, 0.25, smoothness=2.0, distance=1.0, variance=4.0,
    ...                           relative_variance=0.0, world_size=4)
    0.29
    """
    steps, a = count("steps", steps), positive("step_size", step_size)
    beta, radius = positive("smoothness", smoothness), positive("distance", distance)
    noise, eps = (
        non_negative("variance", variance),
        non_negative("relative_variance", relative_variance),
    )
    ranks = count("world_size", world_size)
    kept = 1 - a * beta * (1 + eps / ranks)
    if kept <= 0:
        return math.inf
    return (radius**2 / (a * steps) + a * (1 + eps) * noise / ranks) / (2 * kept)


def convex_rate(
    target: float,
    gradients: QuantizedGradients,
    *,
    smoothness: float,
    distance: float,
    noise: Noise = "bounded",
) -> Rate:
    """Fewest steps after which quantized SGD is within ``target`` of a smooth convex minimum.

    "bounded": the smallest T for which ``convex_gap_bound`` is at most the target; never more
    than max(4 R^2 s^2 / target^2, beta R^2 / target), rounded up, with s^2 the averaged variance.
    "relative": the same for ``convex_relative_gap_bound`` at its best step.

    Args:
        target: gap f(w) - f* to reach, > 0.
        gradients: noise, ranks and size of a message.
        smoothness: beta, Lipschitz constant of the gradient.
        distance: R >= ||w_0 - w*||.
        noise: "bounded" (the theorem) or "relative" (needs only ``gradients.variance``).

    Returns:
        The answer; without numbers when the variance is not bounded.

    Raises:
        ConfigError: a number out of range.

    >>> noise = QuantizedGradients(1.0, world_size=2, second_moment=1.0, bits_per_message=100)
    >>> answer = convex_rate(0.1, noise, smoothness=1.0, distance=1.0)
    >>> answer.steps, answer.bits
    (110, 22000)

    References:
        Ramezani-Kebrya et al. (2021), Theorem 6, with the constants of Bubeck (2015), Theorem 6.3.
    """
    question = Question(
        theorem=f"smooth convex SGD, {noise} noise (NUQSGD 2021, Theorem 6)",
        measure="E f(mean of the points) - f*",
        target=positive("target", target),
        assumptions=(
            "f is convex and its gradient is Lipschitz with the given constant",
            "the distance from the start to a minimum is at most the given one",
            "gradients are unbiased, independent between ranks, their noise bounded as given",
        ),
        messages_per_step=gradients.world_size,
        bits_per_message=gradients.bits_per_message,
    )
    given = {"smoothness": positive("smoothness", smoothness)}
    given["distance"] = positive("distance", distance)
    if checked_noise(noise) == "relative":
        return _relative_rate(question, gradients, **given)
    variance = gradients.averaged_variance_bound
    if variance is None:
        return question.not_met(NO_VARIANCE)
    given["variance"] = variance
    steps = fewest_steps(lambda steps: convex_gap_bound(steps, **given), question.target)
    if steps is None:
        return question.not_met(TOO_MANY)
    return question.met(steps, convex_step_size(steps, **given))


def _relative_rate(
    question: Question, gradients: QuantizedGradients, smoothness: float, distance: float
) -> Rate:
    if gradients.variance is None:
        return question.not_met(NO_RANK_VARIANCE)
    bound = partial(
        convex_relative_gap_bound,
        smoothness=smoothness,
        distance=distance,
        variance=gradients.variance,
        relative_variance=gradients.relative_variance,
        world_size=gradients.world_size,
    )

    def best_step(steps: int) -> float:
        return searched_step(partial(bound, steps), 1 / smoothness)

    steps = fewest_steps(lambda steps: bound(steps, best_step(steps)), question.target)
    return question.not_met(TOO_MANY) if steps is None else question.met(steps, best_step(steps))
