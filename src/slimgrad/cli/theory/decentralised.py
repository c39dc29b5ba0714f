"""``slimgrad theory decentralised``: whether gossip with quantized differences converges."""

from __future__ import annotations

from typing import Annotated

from slimgrad.cli.output import FLAG
from slimgrad.cli.theory.answer import Answer
from slimgrad.cli.theory.configuration import Choice, Configuration, grid_of
from slimgrad.cli.theory.steps import add_rate, message_bits, relative_variance


def decentralised(
    *,
    topology: str = "ring",
    ranks: int = 4,
    choice: Choice = Configuration(),  # noqa: B008  frozen
    target: float = 0.01,
    smoothness: float = 1.0,
    start_gap: float = 1.0,
    variance: float = 1.0,
    dissimilarity: float = 0.0,
    dimension: int = 10**6,
    code: str = "fixed",
    condition: str = "printed",
    json: Annotated[bool, FLAG] = False,
) -> int:
    """Whether ranks that only talk to neighbours stay together, and how many steps they take.

    Args:
        topology: complete, hypercube, ring or star.
        ranks: Number of workers, up to 512.
        choice: Which quantizer.
        target: Mean of ||grad f||^2 to reach.
        smoothness: Lipschitz constant of every worker's gradient.
        start_gap: f(start) - f*.
        variance: Bound on E||g - grad f||^2 of one worker.
        dissimilarity: Bound on the mean over workers of ||grad f_i - grad f||^2.
        dimension: Number of parameters.
        code: How symbols are sent: fixed (width) or elias (bound on the mean length).
        condition: printed (of the published theorem) or contraction (weaker, sufficient).
        json: Print JSON on stdout and nothing else there.
    """
    from slimgrad.theory import rates

    grid = grid_of(choice)
    weights = rates.mixing_weights(topology, ranks)
    eps, bits = relative_variance(grid, dimension), message_bits(grid, dimension, code)
    noise = rates.QuantizedGradients(
        eps, world_size=ranks, variance=variance, bits_per_message=bits
    )
    found = rates.decentralised_rate(
        target,
        noise,
        weights,
        smoothness=smoothness,
        start_gap=start_gap,
        dissimilarity=dissimilarity,
        condition=condition,
    )
    held = rates.dcd_condition(weights, eps)
    answer = Answer(f"{topology} of {ranks}; {grid.name}", assumptions=found.assumptions)
    answer.add("relative_variance", "relative variance of the quantizer, at most", eps)
    answer.add("rho", "second eigenvalue rho", held.rho)
    answer.add("mu", "largest |eigenvalue - 1| mu", held.mu)
    printed = "published: below (1 - rho)^2 / (4 mu^2)"
    answer.add("printed_limit", "variance allowed by the theorem", held.printed_limit, printed)
    answer.add("printed_met", "  met", held.printed_met)
    weaker = "below (1 - rho^2) / mu^2"
    answer.add("contraction_limit", "variance that still contracts", held.contraction_limit, weaker)
    answer.add("contraction_met", "  met", held.contraction_met)
    answer.add("condition", "condition asked for", condition)
    answer.add("measure", "what falls", found.measure)
    answer.add("target", "to", target)
    add_rate(answer, found)
    return answer.show(json=json)
