"""Steps and bits of decentralised SGD that exchanges quantized differences (DCD-PSGD).

Rank i holds x_i, and every neighbour holds a copy of it. With W the mixing matrix,
z_i = sum over j of W_ij x_j - a g_i(x_i) - x_i is quantized, and x_i += Q(z_i) everywhere.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from slimgrad.core.errors import ConfigError
from slimgrad.core.registry import unknown_name_message
from slimgrad.theory.rates.arguments import count, non_negative, positive
from slimgrad.theory.rates.gradients import NO_RANK_VARIANCE, QuantizedGradients
from slimgrad.theory.rates.record import Question, Rate
from slimgrad.theory.rates.search import TOO_MANY, fewest_steps, searched_step
from slimgrad.theory.rates.topology import Spectrum, checked_mixing, spectrum

CONDITIONS = ("printed", "contraction")
_CONNECTED = 1 - 1e-12


@dataclass(frozen=True)
class DcdCondition:
    """Whether quantized differences keep the ranks together.

    Attributes:
        rho: largest |eigenvalue| of the mixing matrix but for the one that is 1.
        mu: largest |eigenvalue - 1|.
        relative_variance: eps of the quantizer.
        printed_limit: eps must be below (1 - rho)^2 / (4 mu^2) in the published theorem.
        printed_met: whether it is.
        contraction_limit: eps below (1 - rho^2) / mu^2 is enough for the ranks to stay together.
        contraction_met: whether it is.
    """

    rho: float
    mu: float
    relative_variance: float
    printed_limit: float
    printed_met: bool
    contraction_limit: float
    contraction_met: bool


def dcd_condition(weights: npt.ArrayLike, relative_variance: float) -> DcdCondition:
    """Check 4 mu^2 eps < (1 - rho)^2, and the weaker rho^2 + mu^2 eps < 1.

    One step takes the disagreement D = X (I - 1 1^T / n) to D W + C, plus terms of the gradient,
    where C = Q(Z) - Z has mean zero and E||C||^2 <= eps ||D (W - I)||^2 <= eps mu^2 ||D||^2. So
    E||D||^2 is multiplied by at most rho^2 + mu^2 eps. The published condition implies this one.

    Args:
        weights: (n, n) symmetric and doubly stochastic.
        relative_variance: eps, from ``slimgrad.theory.variance_bound``.

    Raises:
        ConfigError: bad weights, or ``relative_variance`` out of range.

    >>> from slimgrad.theory.rates.topology import ring_weights
    >>> found = dcd_condition(ring_weights(4), 1 / 8)
    >>> round(found.printed_limit, 4), found.printed_met
    (0.0625, False)
    >>> round(found.contraction_limit, 4), found.contraction_met
    (0.5, True)

    References:
        Tang, Gan, Zhang, Zhang, Liu (2018), Theorem 1; Ramezani-Kebrya et al. (2021), Theorem 22.
    """
    found, eps = spectrum(weights), non_negative("relative_variance", relative_variance)
    if found.rho >= _CONNECTED:
        printed = weaker = 0.0
    elif found.mu == 0:  # one rank agrees with itself
        printed = weaker = math.inf
    else:
        printed = (1 - found.rho) ** 2 / (4 * found.mu**2)
        weaker = (1 - found.rho**2) / found.mu**2
    return DcdCondition(
        rho=found.rho,
        mu=found.mu,
        relative_variance=eps,
        printed_limit=printed,
        printed_met=eps < printed,
        contraction_limit=weaker,
        contraction_met=eps < weaker,
    )


def decentralised_gradient_bound(
    steps: int,
    step_size: float,
    *,
    mixing: Spectrum,
    world_size: int,
    relative_variance: float,
    smoothness: float,
    start_gap: float,
    variance: float,
    dissimilarity: float = 0.0,
) -> float:
    """Bound on the mean ||grad f(mean of ranks)||^2 of T steps of DCD-PSGD from a common start.

    With q = rho^2 + mu^2 eps < 1, A = (1 + q) / (1 - q), n ranks, step a,
    S = 4 (a beta^2 / 2 + beta eps (mu^2 + 2 a^2 beta^2) / n) / (1 - q) and
    c = 1 - 4 beta eps a / n - 4 eps A S a:

    (2 / c) [D / (a T) + a S (1 + eps) (2 A z^2 + s^2)
    + a beta ((1 + eps) s^2 + 4 eps z^2) / (2 n)].

    Guarantee: holds for f = mean of f_i with beta-Lipschitz gradients, provided q < 1,
    a beta <= 1, 8 A (1 + eps) (a beta)^2 <= 1 - q and c > 0; infinite otherwise. It adds the
    descent inequality of the mean to the recursion of the disagreement, in which Young's
    inequality is used with the weight (1 - q) / (2 q).

    Args:
        steps: T >= 1.
        step_size: a > 0.
        mixing: rho and mu of the mixing matrix.
        world_size: n.
        relative_variance: eps of the quantizer.
        smoothness: beta, Lipschitz constant of every grad f_i.
        start_gap: D >= f(x_0) - f*.
        variance: s^2, bound on E||g_i - grad f_i||^2.
        dissimilarity: z^2, bound on the mean over i of ||grad f_i - grad f||^2.

    Raises:
        ConfigError: a number out of range.

    >>> exact = Spectrum(rho=0.0, mu=1.0)
    >>> round(decentralised_gradient_bound(10**6, 1e-3, mixing=exact, world_size=1,
    ...       relative_variance=0.0, smoothness=1.0, start_gap=1.0, variance=1.0), 6)
    0.003004

    References:
        The algorithm: Tang, Gan, Zhang, Zhang, Liu (2018). The constants are derived here.
    """
    steps, a = count("steps", steps), positive("step_size", step_size)
    n, beta = count("world_size", world_size), positive("smoothness", smoothness)
    eps = non_negative("relative_variance", relative_variance)
    gap, noise = positive("start_gap", start_gap), non_negative("variance", variance)
    spread = non_negative("dissimilarity", dissimilarity)
    q = mixing.rho**2 + mixing.mu**2 * eps
    if not q < 1 or a * beta > 1:
        return math.inf
    young = (1 + q) / (1 - q)
    if 8 * young * (1 + eps) * (a * beta) ** 2 > 1 - q:
        return math.inf
    coupling = a * beta**2 / 2 + beta * eps * (mixing.mu**2 + 2 * (a * beta) ** 2) / n
    per_step = 4 * coupling / (1 - q)
    kept = 1 - 4 * beta * eps * a / n - 4 * eps * young * per_step * a
    if kept <= 0:
        return math.inf
    apart = per_step * (1 + eps) * (2 * young * spread + noise)
    together = beta * ((1 + eps) * noise + 4 * eps * spread) / (2 * n)
    return 2 / kept * (gap / (a * steps) + a * (apart + together))


def decentralised_rate(
    target: float,
    gradients: QuantizedGradients,
    weights: npt.ArrayLike,
    *,
    smoothness: float,
    start_gap: float,
    dissimilarity: float = 0.0,
    condition: str = "printed",
) -> Rate:
    """Steps after which decentralised quantized SGD (DCD-PSGD) has mean ||grad f||^2 ``target``.

    The numbers are those of ``decentralised_gradient_bound`` at its best step. Whether there are
    any is decided by ``condition``: that of the published theorem, or the weaker one under which
    the bound holds. Each rank sends one message to each of its neighbours in a step.

    Args:
        target: mean of ||grad f||^2 at the mean of the ranks, > 0.
        gradients: noise and size of a message; ``variance`` is needed.
        weights: (n, n) symmetric and doubly stochastic; n must be ``gradients.world_size``.
        smoothness: beta, Lipschitz constant of every rank's gradient.
        start_gap: D >= f(x_0) - f*.
        dissimilarity: bound on the mean over ranks of ||grad f_i - grad f||^2.
        condition: "printed" or "contraction"; see ``dcd_condition``.

    Returns:
        The answer; without numbers when the condition is not met.

    Raises:
        ConfigError: bad weights, a number out of range, an unknown ``condition``.

    >>> from slimgrad.theory.rates.topology import ring_weights
    >>> noise = QuantizedGradients(1 / 8, world_size=4, variance=1.0)
    >>> decentralised_rate(0.1, noise, ring_weights(4), smoothness=1.0, start_gap=1.0).met
    False

    References:
        Tang, Gan, Zhang, Zhang, Liu (2018), Theorem 1; Ramezani-Kebrya et al. (2021), Theorem 22.
    """
    if condition not in CONDITIONS:
        raise ConfigError(unknown_name_message("condition", condition, CONDITIONS))
    matrix = checked_mixing(weights)
    if len(matrix) != gradients.world_size:
        raise ConfigError(
            f"the mixing matrix is for {len(matrix)} ranks, but world_size is "
            f"{gradients.world_size}; they must agree"
        )
    question = Question(
        theorem=f"decentralised SGD, quantized differences ({_SOURCES[condition]})",
        measure="mean over t < T of E||grad f(mean of ranks at t)||^2",
        target=positive("target", target),
        assumptions=(
            "the gradient of every rank's f_i is Lipschitz with the given constant",
            "f at the common start is at most the given gap above its lowest value",
            "gradients are unbiased and independent, their variance bounded as given",
            "the gradients of the f_i differ from their mean by no more than the given amount",
            "mixing weights are fixed, symmetric and doubly stochastic",
            _CONDITION_TEXTS[condition],
        ),
        messages_per_step=int(np.count_nonzero(matrix)) - int(np.count_nonzero(matrix.diagonal())),
        bits_per_message=gradients.bits_per_message,
    )
    found = dcd_condition(matrix, gradients.relative_variance)
    beta, gap = positive("smoothness", smoothness), positive("start_gap", start_gap)
    spread = non_negative("dissimilarity", dissimilarity)
    reason = _why_not(found, condition)
    if reason:
        return question.not_met(reason)
    if gradients.variance is None:
        return question.not_met(NO_RANK_VARIANCE)
    return _solve(question, found, gradients, beta, gap, spread)


_SOURCES = {
    "printed": "condition of NUQSGD 2021, Theorem 22; constants derived here",
    "contraction": "condition and constants derived here",
}
_CONDITION_TEXTS = {
    "printed": "4 mu^2 eps < (1 - rho)^2",
    "contraction": "rho^2 + mu^2 eps < 1",
}


def _why_not(found: DcdCondition, condition: str) -> str:
    """What is wrong, with numbers; empty when nothing is."""
    if found.rho >= _CONNECTED:
        return "rho = 1: the ranks are not connected, so they never agree"
    printed = condition == "printed"
    if found.printed_met if printed else found.contraction_met:
        return ""
    limit = found.printed_limit if printed else found.contraction_limit
    formula = "(1 - rho)^2 / (4 mu^2)" if printed else "(1 - rho^2) / mu^2"
    return (
        f"eps = {found.relative_variance:.4g} is not below {formula} = {limit:.4g} "
        f"(rho = {found.rho:.4g}, mu = {found.mu:.4g}); use finer levels, shorter buckets or a "
        "better connected topology"
    )


def _solve(
    question: Question,
    found: DcdCondition,
    gradients: QuantizedGradients,
    smoothness: float,
    start_gap: float,
    dissimilarity: float,
) -> Rate:
    def bound(steps: int, step_size: float) -> float:
        return decentralised_gradient_bound(
            steps,
            step_size,
            mixing=Spectrum(found.rho, found.mu),
            world_size=gradients.world_size,
            relative_variance=gradients.relative_variance,
            smoothness=smoothness,
            start_gap=start_gap,
            variance=gradients.variance or 0.0,
            dissimilarity=dissimilarity,
        )

    def best_step(steps: int) -> float:
        return searched_step(lambda step_size: bound(steps, step_size), 1 / smoothness)

    steps = fewest_steps(lambda steps: bound(steps, best_step(steps)), question.target)
    return question.not_met(TOO_MANY) if steps is None else question.met(steps, best_step(steps))
