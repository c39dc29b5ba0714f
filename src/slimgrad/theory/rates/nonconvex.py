"""Steps and bits of quantized SGD on a smooth function that need not be convex."""

from __future__ import annotations

from slimgrad.theory.rates.arguments import count, non_negative, positive
from slimgrad.theory.rates.gradients import (
    NO_RANK_VARIANCE,
    NO_VARIANCE,
    Noise,
    QuantizedGradients,
    checked_noise,
)
from slimgrad.theory.rates.record import Question, Rate
from slimgrad.theory.rates.search import TOO_MANY, balanced_step, fewest_steps


def nonconvex_gradient_bound(
    steps: int, step_size: float, *, start_gap: float, growth: float
) -> float:
    """Bound on the mean squared gradient norm of T steps: 2 D / (a T) + a G.

    Guarantee: for f with beta-Lipschitz gradient, (1/T) sum over t < T of E||grad f(w_t)||^2 is
    at most this in both of these cases,

    * "bounded": a <= 1 / beta and G = beta s^2, with s^2 the variance of the applied gradient,
    * "relative": a <= 1 / (beta (1 + eps / W)) and G = beta (1 + eps) s1^2 / W, with s1^2 the
      variance of the gradient of one rank before quantization; ||grad f|| need not be bounded.

    Args:
        steps: T >= 1.
        step_size: a > 0, within the case's limit.
        start_gap: D >= f(w_0) - f*.
        growth: G >= 0.

    Raises:
        ConfigError: a number out of range.

    >>> nonconvex_gradient_bound(100, 0.5, start_gap=1.0, growth=2.0)
    1.04

    References:
        Ghadimi and Lan (2013), Corollary 2.2; Ramezani-Kebrya et al. (2021), Theorem 8. "relative"
        follows from the same descent inequality with E||mean Q(g)||^2 <= (1 + eps / W)
        ||grad f||^2 + (1 + eps) s1^2 / W.
    """
    steps, step_size = count("steps", steps), positive("step_size", step_size)
    gap, slope = positive("start_gap", start_gap), non_negative("growth", growth)
    return 2 * gap / (step_size * steps) + step_size * slope


def nonconvex_terms(
    gradients: QuantizedGradients, smoothness: float, noise: Noise
) -> tuple[float, float] | None:
    """(largest step, G) of ``nonconvex_gradient_bound``; None when the noise is not bounded.

    Raises:
        ConfigError: ``noise`` is neither "bounded" nor "relative", or a number is out of range.

    >>> nonconvex_terms(QuantizedGradients(1.0, variance=3.0), 0.5, "relative")
    (1.0, 3.0)
    """
    beta = positive("smoothness", smoothness)
    eps, ranks = gradients.relative_variance, gradients.world_size
    if checked_noise(noise) == "bounded":
        variance = gradients.averaged_variance_bound
        return None if variance is None else (1 / beta, beta * variance)
    if gradients.variance is None:
        return None
    return 1 / (beta * (1 + eps / ranks)), beta * (1 + eps) * gradients.variance / ranks


def nonconvex_rate(
    target: float,
    gradients: QuantizedGradients,
    *,
    smoothness: float,
    start_gap: float,
    noise: Noise = "bounded",
) -> Rate:
    """Fewest steps after which the mean squared gradient norm of quantized SGD is ``target``.

    The smallest T for which ``nonconvex_gradient_bound`` at its best step is at most the target.

    Args:
        target: mean of ||grad f||^2 to reach, > 0.
        gradients: noise, ranks and size of a message.
        smoothness: beta, Lipschitz constant of the gradient.
        start_gap: D >= f(w_0) - f*.
        noise: "bounded" (the theorem) or "relative" (sharper; needs ``gradients.variance``).

    Returns:
        The answer; without numbers when the noise is not bounded.

    Raises:
        ConfigError: a number out of range, an unknown ``noise``.

    >>> noise = QuantizedGradients(0.0, second_moment=1.0)
    >>> nonconvex_rate(0.1, noise, smoothness=1.0, start_gap=1.0).steps
    800

    References:
        Ramezani-Kebrya et al. (2021), Theorem 8.
    """
    bounded = "gradient that is applied" if noise == "bounded" else "gradient of one rank"
    question = Question(
        theorem=f"smooth non-convex SGD, {noise} noise (NUQSGD 2021, Theorem 8)",
        measure="mean over t < T of E||grad f(w_t)||^2",
        target=positive("target", target),
        assumptions=(
            "the gradient of f is Lipschitz with the given constant",
            "f at the start is at most the given gap above its lowest value",
            "gradients are unbiased and independent between ranks",
            f"the variance of the {bounded} is bounded as given",
        ),
        messages_per_step=gradients.world_size,
        bits_per_message=gradients.bits_per_message,
    )
    gap = positive("start_gap", start_gap)
    terms = nonconvex_terms(gradients, smoothness, noise)
    if terms is None:
        return question.not_met(NO_VARIANCE if noise == "bounded" else NO_RANK_VARIANCE)
    return solve_two_terms(question, gap, *terms)


def solve_two_terms(question: Question, gap: float, largest: float, growth: float) -> Rate:
    """The answer when 2 gap / (a T) + a growth bounds the measure for every step a <= largest."""

    def step_size(steps: int) -> float:
        return balanced_step(2 * gap / steps, growth, largest)

    def bound(steps: int) -> float:
        return 2 * gap / (step_size(steps) * steps) + step_size(steps) * growth

    steps = fewest_steps(bound, question.target)
    return question.not_met(TOO_MANY) if steps is None else question.met(steps, step_size(steps))
