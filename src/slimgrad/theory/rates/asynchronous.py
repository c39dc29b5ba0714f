"""Steps and bits of asynchronous SGD with a parameter server and bounded delay."""

from __future__ import annotations

import math

from slimgrad.core.errors import ConfigError
from slimgrad.theory.rates.arguments import MOST, count, non_negative, positive
from slimgrad.theory.rates.gradients import NO_VARIANCE, QuantizedGradients
from slimgrad.theory.rates.record import Question, Rate
from slimgrad.theory.rates.search import TOO_MANY


def asynchronous_gradient_bound(
    steps: int,
    step_size: float,
    *,
    smoothness: float,
    start_gap: float,
    variance: float,
    batch: int,
    delay: int,
) -> float:
    """Bound on the mean ||grad f||^2 of T steps that add M gradients of points up to tau old.

    2 D / (M T a) + a beta s^2 + 2 a^2 beta^2 M tau s^2.

    Guarantee: for w_{t+1} = w_t - a (sum of M gradients), each unbiased with variance at most
    s^2 at a point at most tau steps old and chosen independently of its noise, provided
    beta M a + 2 (beta M tau a)^2 <= 1.

    Args:
        steps: T >= 1.
        step_size: a > 0; it multiplies the sum, not the mean, of the M gradients.
        smoothness: beta, Lipschitz constant of the gradient.
        start_gap: D >= f(w_0) - f*.
        variance: s^2, bound on the variance of one gradient as it arrives.
        batch: M, gradients the server adds in one step.
        delay: tau >= 0, in steps.

    Raises:
        ConfigError: a number out of range, or a step too long for the guarantee.

    >>> asynchronous_gradient_bound(100, 0.1, smoothness=1.0, start_gap=1.0, variance=1.0,
    ...                             batch=1, delay=1)
    0.32

    References:
        Lian, Huang, Li, Liu (2015), Theorem 1; Ramezani-Kebrya et al. (2021), Theorem 21.
    """
    steps, a = count("steps", steps), positive("step_size", step_size)
    beta = positive("smoothness", smoothness)
    batch, tau = count("batch", batch), count("delay", delay, least=0)
    noise, gap = non_negative("variance", variance), positive("start_gap", start_gap)
    if beta * batch * a + 2 * (beta * batch * tau * a) ** 2 > 1:
        raise ConfigError(
            f"step_size={a!r} is too long for delay={tau} and batch={batch}: "
            "beta M a + 2 (beta M tau a)^2 must be at most 1; take a shorter step"
        )
    return 2 * gap / (batch * steps * a) + a * beta * noise * (1 + 2 * a * beta * batch * tau)


def asynchronous_rate(
    target: float,
    gradients: QuantizedGradients,
    *,
    smoothness: float,
    start_gap: float,
    batch: int,
    delay: int,
) -> Rate:
    """Steps after which the mean ||grad f||^2 of asynchronous quantized SGD is ``target``.

    With a = sqrt(D / (M beta T s^2)) and T >= 4 M beta D (tau + 1)^2 / s^2 the bound is at most
    4 sqrt(D beta s^2 / (M T)), so T = max(16 D beta s^2 / (M target^2), that limit) suffices.
    s^2 is the variance of one message: averaging is what M stands for.

    Args:
        target: mean of ||grad f||^2 to reach, > 0.
        gradients: noise of a message and its size.
        smoothness: beta, Lipschitz constant of the gradient.
        start_gap: D >= f(w_0) - f*.
        batch: M, gradients the server adds in one step.
        delay: tau >= 0, in steps.

    Returns:
        The answer; without numbers when the noise is not bounded, or is zero.

    Raises:
        ConfigError: a number out of range.

    >>> noise = QuantizedGradients(0.0, second_moment=1.0)
    >>> given = {"smoothness": 1.0, "start_gap": 1.0, "batch": 4}
    >>> [asynchronous_rate(0.1, noise, delay=tau, **given).steps for tau in (0, 9)]
    [400, 1600]

    References:
        Lian, Huang, Li, Liu (2015), Corollary 2; Ramezani-Kebrya et al. (2021), Theorem 21.
    """
    question = Question(
        theorem="asynchronous SGD, parameter server (NUQSGD 2021, Theorem 21)",
        measure="mean over t < T of E||grad f(w_t)||^2",
        target=positive("target", target),
        assumptions=(
            "the gradient of f is Lipschitz with the given constant",
            "f at the start is at most the given gap above its lowest value",
            "gradients are unbiased, mutually independent, their noise bounded as given",
            "no gradient is older than the given delay, and delays do not depend on the noise",
        ),
        messages_per_step=count("batch", batch),
        bits_per_message=gradients.bits_per_message,
    )
    beta, gap = positive("smoothness", smoothness), positive("start_gap", start_gap)
    tau, variance = count("delay", delay, least=0), gradients.message_variance_bound
    if variance is None:
        return question.not_met(NO_VARIANCE)
    if variance == 0:
        return question.not_met("the step of this theorem needs a variance above 0")
    enough = 16 * gap * beta * variance / (batch * question.target**2)
    needed = max(enough, 4 * batch * beta * gap * (tau + 1) ** 2 / variance, 1.0)
    if needed > MOST:
        return question.not_met(TOO_MANY)
    steps = math.ceil(needed)
    return question.met(steps, math.sqrt(gap / (batch * beta * steps * variance)))
