"""``slimgrad theory steps``: how many steps and bits training takes, at most."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Annotated

from cyclopts import Parameter

from slimgrad.cli.output import FLAG
from slimgrad.cli.theory.answer import Answer
from slimgrad.cli.theory.configuration import Choice, Configuration, Grid, grid_of
from slimgrad.core.errors import ConfigError
from slimgrad.core.registry import unknown_name_message

if TYPE_CHECKING:
    from slimgrad.theory.rates import QuantizedGradients, Rate

NEEDS = {
    "convex": ("smoothness", "distance"),
    "nonconvex": ("smoothness", "start_gap"),
    "momentum-convex": ("distance", "start_gap"),
    "momentum": ("smoothness", "start_gap"),
    "asynchronous": ("smoothness", "start_gap", "delay"),
}
CODES = ("fixed", "elias")
METHODS = {"heavy-ball": 0.0, "nesterov": 1.0}


@dataclass(frozen=True)
class Problem:
    """What is minimised, and how far.

    Args:
        problem: convex, nonconvex, momentum-convex, momentum or asynchronous.
        target: What to reach: f - f* if convex, the mean of ||grad f||^2 otherwise.
        smoothness: Lipschitz constant of the gradient.
        distance: Distance from the start to the minimum.
        start_gap: f(start) - f*.
        second_moment: Bound on E||g||^2 of one rank's stochastic gradient.
        variance: Bound on E||g - grad f||^2 of one rank.
        gradient_norm: Bound on ||grad f||.
        noise: For convex and nonconvex: bounded, or relative (needs only variance).
        momentum: Momentum factor.
        method: Kind of momentum: heavy-ball or nesterov.
        delay: For asynchronous: age of the oldest gradient in steps.
    """

    problem: str = "convex"
    target: float = 0.01
    smoothness: float | None = None
    distance: float | None = None
    start_gap: float | None = None
    second_moment: float | None = None
    variance: float | None = None
    gradient_norm: float | None = None
    noise: str = "bounded"
    momentum: float = 0.9
    method: str = "heavy-ball"
    delay: int | None = None


def steps(
    *,
    problem: Annotated[Problem, Parameter(name="*")] = Problem(),
    choice: Choice = Configuration(),  # noqa: B008  frozen
    ranks: int = 4,
    dimension: int = 10**6,
    code: str = "fixed",
    json: Annotated[bool, FLAG] = False,
) -> int:
    """How many steps and bits reach a target, with quantized and with exact gradients.

    Args:
        problem: What is minimised.
        choice: Which quantizer.
        ranks: Workers that average; for asynchronous, gradients the server adds in one step.
        dimension: Number of parameters.
        code: How symbols are sent: fixed (width) or elias (bound on the mean length).
        json: Print JSON on stdout and nothing else there.
    """
    from slimgrad.theory.rates import QuantizedGradients

    grid = grid_of(choice)
    bits = message_bits(grid, dimension, code)
    eps = relative_variance(grid, dimension)
    noise = QuantizedGradients(
        eps,
        world_size=ranks,
        second_moment=problem.second_moment,
        variance=problem.variance,
        gradient_norm=problem.gradient_norm,
        bits_per_message=bits,
    )
    found = rate_of(problem, noise)
    exact = rate_of(problem, replace(noise, relative_variance=0.0, bits_per_message=32 * dimension))
    answer = Answer(f"{found.theorem}; {grid.name}", assumptions=found.assumptions)
    answer.add("measure", "what falls", found.measure)
    answer.add("target", "to", found.target)
    answer.add("relative_variance", "relative variance of the quantizer, at most", eps)
    add_rate(answer, found)
    answer.add("exact_steps", "steps with exact gradients", exact.steps)
    answer.add("exact_bits", "bits with exact float32 gradients", exact.bits)
    if found.bits is not None and exact.bits is not None:
        answer.add("bits_ratio", "bits, quantized / exact", found.bits / exact.bits)
    return answer.show(json=json)


def rate_of(problem: Problem, noise: QuantizedGradients) -> Rate:
    """The answer of the calculator that ``problem`` names.

    Raises:
        ConfigError: an unknown name, or an option that the calculator needs is missing.
    """
    from slimgrad.theory import rates
    from slimgrad.theory.rates.gradients import checked_noise

    name = problem.problem
    if name not in NEEDS:
        raise ConfigError(unknown_name_message("problem", name, NEEDS))
    if problem.method not in METHODS:
        raise ConfigError(unknown_name_message("method", problem.method, METHODS))
    missing = [f"--{o.replace('_', '-')}" for o in NEEDS[name] if getattr(problem, o) is None]
    if missing:
        raise ConfigError(f"--problem {name} needs {' and '.join(missing)}")
    given = {option: getattr(problem, option) for option in NEEDS[name]}
    kind = checked_noise(problem.noise)
    if name == "convex":
        return rates.convex_rate(problem.target, noise, noise=kind, **given)
    if name == "nonconvex":
        return rates.nonconvex_rate(problem.target, noise, noise=kind, **given)
    if name == "asynchronous":
        return rates.asynchronous_rate(problem.target, noise, batch=noise.world_size, **given)
    given |= {"momentum": problem.momentum, "s": METHODS[problem.method]}
    calculate = rates.momentum_nonconvex_rate if name == "momentum" else rates.momentum_convex_rate
    return calculate(problem.target, noise, **given)


def add_rate(answer: Answer, found: Rate) -> None:
    """Append what a calculator says: numbers, or why there are none."""
    answer.add("met", "assumptions met", found.met, found.reason)
    answer.add("steps", "steps", found.steps)
    answer.add("step_size", "step size", found.step_size)
    messages = f"{found.messages_per_step} messages a step"
    answer.add("bits", "bits sent by all ranks", found.bits, messages)


def message_bits(grid: Grid, dimension: int, code: str) -> float:
    """Bits of one gradient: every component, and a 32-bit norm for each bucket.

    Raises:
        ConfigError: an unknown code, or ``dimension`` is not from 1 to 10**12.
    """
    if code not in CODES:
        raise ConfigError(unknown_name_message("code", code, CODES))
    if not 1 <= dimension <= 10**12:
        raise ConfigError(f"--dimension {dimension}: must be from 1 to 10^12 parameters")
    whole, rest = divmod(dimension, grid.bucket_size)
    bits = whole * bucket_bits(grid, grid.bucket_size, code)
    return bits + (bucket_bits(grid, rest, code) if rest else 0)


def bucket_bits(grid: Grid, n: int, code: str) -> float:
    """Bits of a bucket of n components with its norm; for elias a bound on their mean."""
    if code == "fixed":
        return grid.bits * n + 32
    from slimgrad.theory import elias_bits_bound, expected_nonzeros_bound

    nonzeros = expected_nonzeros_bound(grid.levels, n, grid.norm)
    return elias_bits_bound(n, grid.s, nonzeros=nonzeros)


def relative_variance(grid: Grid, dimension: int) -> float:
    """The bound for the longest bucket of a gradient, rounded with 16-bit random numbers."""
    from slimgrad.comm.quantizers.level import PROBABILITY_RESOLUTION
    from slimgrad.theory import rounding_resolution_bound, variance_bound

    n = min(grid.bucket_size, dimension)
    drawn = rounding_resolution_bound(grid.levels, n, PROBABILITY_RESOLUTION)
    return variance_bound(grid.levels, n, grid.norm) + drawn
