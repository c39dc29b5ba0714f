"""Steps and bits of quantized SGD with momentum: heavy ball, Nesterov, and what lies between.

Both theorems speak of x_{t+1} = y_{t+1} + mu (z_{t+1} - z_t) with y_{t+1} = x_t - a g_t,
z_{t+1} = x_t - s a g_t and z_0 = x_0: s = 0 is the heavy ball, s = 1 Nesterov's method,
s = 1 / (1 - mu) plain SGD with step a / (1 - mu).
"""

from __future__ import annotations

import math
from functools import partial

from slimgrad.core.errors import ConfigError
from slimgrad.theory.rates.arguments import count, momentum_factor, non_negative, positive
from slimgrad.theory.rates.gradients import NO_GRADIENT_NORM, NO_VARIANCE, QuantizedGradients
from slimgrad.theory.rates.nonconvex import solve_two_terms
from slimgrad.theory.rates.record import Question, Rate
from slimgrad.theory.rates.search import TOO_MANY, fewest_steps

_COMMON = (
    "gradients are unbiased and independent between ranks, their noise bounded as given",
    "||grad f|| is at most the given bound at every point that is visited",
)


def momentum_convex_gap_bound(
    steps: int,
    scale: float,
    *,
    momentum: float,
    s: float,
    distance: float,
    start_gap: float,
    gradient_norm: float,
    variance: float,
) -> float:
    """Bound on the gap of N steps with a = C / sqrt(N) on a convex function.

    mu D / ((1 - mu) N) + (1 - mu) R^2 / (2 C sqrt(N))
    + C (1 + 2 s mu) (V^2 + s2) / (2 (1 - mu) sqrt(N)).

    Guarantee: E f(mean of x_0 ... x_{N-1}) - f* is at most this for a convex f with
    ||grad f|| <= V and unbiased gradients of variance at most s2; f need not be smooth. It
    follows from the distance of x_t + mu / (1 - mu) (x_t - x_{t-1} + s a g_{t-1}) to x*.

    Args:
        steps: N >= 1.
        scale: C > 0.
        momentum: mu, 0 <= mu < 1.
        s: 0 for the heavy ball, 1 for Nesterov; at most 1 / (1 - mu).
        distance: R >= ||x_0 - x*||.
        start_gap: D >= f(x_0) - f*.
        gradient_norm: V.
        variance: s2, bound on the variance of the gradient that is applied.

    Raises:
        ConfigError: a number out of range.

    >>> problem = {"distance": 1.0, "start_gap": 1.0, "gradient_norm": 1.0, "variance": 3.0}
    >>> round(momentum_convex_gap_bound(100, 1.0, momentum=0.5, s=0, **problem), 3)
    0.435

    References:
        Yan, Yang, Li, Lin, Yang (2018), Theorem 1; Ramezani-Kebrya et al. (2021), Theorem 11.
    """
    mu, s = momentum_factor(momentum), _checked_s(s, momentum)
    root = math.sqrt(count("steps", steps))
    scale, radius = positive("scale", scale), positive("distance", distance)
    power = non_negative("gradient_norm", gradient_norm) ** 2 + non_negative("variance", variance)
    start = mu * non_negative("start_gap", start_gap) / ((1 - mu) * steps)
    travel = (1 - mu) * radius**2 / (2 * scale * root)
    return start + travel + scale * (1 + 2 * s * mu) * power / (2 * (1 - mu) * root)


def momentum_convex_rate(
    target: float,
    gradients: QuantizedGradients,
    *,
    momentum: float,
    s: float,
    distance: float,
    start_gap: float,
) -> Rate:
    """Fewest steps after which quantized momentum SGD is within ``target`` of a convex minimum.

    Uses ``momentum_convex_gap_bound`` with its best scale
    C = (1 - mu) R / sqrt((1 + 2 s mu) (V^2 + s2)); arguments as there.

    Returns:
        The answer; without numbers when the gradient or its noise is not bounded.

    Raises:
        ConfigError: a number out of range.

    >>> noise = QuantizedGradients(0.0, second_moment=1.0, gradient_norm=1.0)
    >>> momentum_convex_rate(0.1, noise, momentum=0.0, s=0, distance=1.0, start_gap=1.0).steps
    200

    References:
        Ramezani-Kebrya et al. (2021), Theorem 11.
    """
    question = Question(
        theorem=f"{method_name(momentum, s)}, convex (NUQSGD 2021, Theorem 11)",
        measure="E f(mean of x_0..x_{N-1}) - f*",
        target=positive("target", target),
        assumptions=("f is convex", *_COMMON),
        messages_per_step=gradients.world_size,
        bits_per_message=gradients.bits_per_message,
    )
    radius, variance = positive("distance", distance), gradients.averaged_variance_bound
    if gradients.gradient_norm is None:
        return question.not_met(NO_GRADIENT_NORM)
    if variance is None:
        return question.not_met(NO_VARIANCE)
    power = (1 + 2 * s * momentum) * (gradients.gradient_norm**2 + variance)
    if power == 0:
        return question.not_met("gradient_norm = 0 and no noise: the start is a minimum already")
    scale = (1 - momentum) * radius / math.sqrt(power)
    bound = partial(
        momentum_convex_gap_bound,
        scale=scale,
        momentum=momentum,
        s=s,
        distance=radius,
        start_gap=start_gap,
        gradient_norm=gradients.gradient_norm,
        variance=variance,
    )
    steps = fewest_steps(bound, question.target)
    if steps is None:
        return question.not_met(TOO_MANY)
    return question.met(steps, scale / math.sqrt(steps))


def momentum_growth(
    *, momentum: float, s: float, smoothness: float, gradient_norm: float, variance: float
) -> float:
    """G of the non-convex momentum bound 2 (1 - mu) D / (a N) + a G, for a <= (1 - mu) / (2 beta).

    G = beta [mu^2 ((1 - mu) s - 1)^2 (V^2 + s2) + (1 - mu)^2 s2] / (1 - mu)^3.

    Guarantee: the mean over the first N points of E||grad f||^2, hence also the least, is at most
    2 (1 - mu) D / (a N) + a G, with D >= f(x_0) - f*. For a = min((1 - mu) / (2 beta),
    C / sqrt(N)) this is the theorem as printed.

    Args:
        momentum: mu, 0 <= mu < 1.
        s: 0 for the heavy ball, 1 for Nesterov; at most 1 / (1 - mu).
        smoothness: beta, Lipschitz constant of the gradient.
        gradient_norm: V >= ||grad f||.
        variance: s2, bound on the variance of the gradient that is applied.

    Raises:
        ConfigError: a number out of range.

    >>> momentum_growth(momentum=0.5, s=0, smoothness=1.0, gradient_norm=1.0, variance=1.0)
    6.0

    References:
        Yan, Yang, Li, Lin, Yang (2018), Theorem 2; Ramezani-Kebrya et al. (2021), Theorem 12.
    """
    mu, s = momentum_factor(momentum), _checked_s(s, momentum)
    noise = non_negative("variance", variance)
    power = non_negative("gradient_norm", gradient_norm) ** 2 + noise
    memory = (mu * ((1 - mu) * s - 1)) ** 2 * power
    return positive("smoothness", smoothness) * (memory + (1 - mu) ** 2 * noise) / (1 - mu) ** 3


def momentum_nonconvex_rate(
    target: float,
    gradients: QuantizedGradients,
    *,
    momentum: float,
    s: float,
    smoothness: float,
    start_gap: float,
) -> Rate:
    """Fewest steps after which the mean ||grad f||^2 of quantized momentum SGD is ``target``.

    Arguments as in ``momentum_growth``; ``start_gap`` is D >= f(x_0) - f*.

    Returns:
        The answer; without numbers when the gradient or its noise is not bounded.

    Raises:
        ConfigError: a number out of range.

    >>> noise = QuantizedGradients(0.0, second_moment=1.0, gradient_norm=1.0)
    >>> given = {"smoothness": 1.0, "start_gap": 1.0}
    >>> momentum_nonconvex_rate(0.1, noise, momentum=0.0, s=0, **given).steps
    800

    References:
        Ramezani-Kebrya et al. (2021), Theorem 12.
    """
    question = Question(
        theorem=f"{method_name(momentum, s)}, smooth non-convex (NUQSGD 2021, Theorem 12)",
        measure="mean over t < N of E||grad f(x_t)||^2",
        target=positive("target", target),
        assumptions=(
            "the gradient of f is Lipschitz with the given constant",
            "f at the start is at most the given gap above its lowest value",
            *_COMMON,
        ),
        messages_per_step=gradients.world_size,
        bits_per_message=gradients.bits_per_message,
    )
    beta, gap = positive("smoothness", smoothness), positive("start_gap", start_gap)
    variance, norm = gradients.averaged_variance_bound, gradients.gradient_norm
    if norm is None:
        return question.not_met(NO_GRADIENT_NORM)
    if variance is None:
        return question.not_met(NO_VARIANCE)
    growth = momentum_growth(
        momentum=momentum, s=s, smoothness=beta, gradient_norm=norm, variance=variance
    )
    rest = 1 - momentum
    return solve_two_terms(question, rest * gap, rest / (2 * beta), growth)


def method_name(momentum: float, s: float) -> str:
    """What the update with this ``s`` is called.

    >>> method_name(0.9, 0), method_name(0.9, 1), method_name(0.9, 0.5)
    ('heavy ball', "Nesterov's method", 'momentum SGD with s=0.5')
    """
    _checked_s(s, momentum_factor(momentum))
    if s == 0:
        return "heavy ball"
    return "Nesterov's method" if s == 1 else f"momentum SGD with s={s:g}"


def _checked_s(s: float, momentum: float) -> float:
    s = non_negative("s", s)
    if s * (1 - momentum) > 1 + 1e-9:
        raise ConfigError(
            f"s must be at most 1 / (1 - momentum) = {1 / (1 - momentum):g}, got s={s!r}"
        )
    return s
