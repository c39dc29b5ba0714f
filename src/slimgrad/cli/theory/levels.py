"""``slimgrad theory optimal-levels``: the best grid for a number of bits."""

from __future__ import annotations

from typing import Annotated

from slimgrad.cli.output import FLAG
from slimgrad.cli.theory.answer import Answer
from slimgrad.cli.theory.configuration import Choice, Configuration, grid_of
from slimgrad.cli.theory.data import components


def optimal_levels(
    *,
    choice: Choice = Configuration(),  # noqa: B008  frozen
    data: str | None = None,
    json: Annotated[bool, FLAG] = False,
) -> int:
    """The levels that add least variance, in the worst case and for given data.

    Args:
        choice: Which quantizer.
        data: What to suit the levels to: gauss, laplace, or a .npy or .pt file.
        json: Print JSON on stdout and nothing else there.
    """
    from slimgrad import theory

    grid = grid_of(choice)
    n, s, norm = grid.bucket_size, grid.s, grid.norm
    answer = Answer(
        f"best levels in place of {grid.name}",
        assumptions=("components are rounded independently and without bias",),
    )
    answer.add("levels", "levels now", grid.levels)
    answer.add("variance_bound", "  bound", theory.variance_bound(grid.levels, n, norm))
    if s >= 1:
        ratio = theory.optimal_ratio(s, n, norm)
        best = theory.variance_bound(theory.exponential_levels(s, ratio), n, norm)
        answer.add("optimal_ratio", "best ratio of exponential levels", ratio)
        answer.add("optimal_ratio_variance_bound", "  bound", best)
    levels = theory.minimax_levels(s, n, norm)
    answer.add("minimax_levels", "best in the worst case", levels)
    bound = theory.variance_bound(levels, n, norm)
    if norm == "l2":
        bound = min(bound, theory.worst_case_variance(levels, n, relaxed=True))
    answer.add("minimax_variance_bound", "  bound", bound)
    if data is not None:
        vector, source = components(data, n)
        density = theory.MagnitudeDensity.from_vector(vector, n, norm)
        now = theory.expected_variance(grid.levels, density)
        answer.add("expected_variance", "mean over the data, levels now", now, source)
        levels = theory.optimal_levels(density, s)
        answer.add("optimal_levels", "best for the data", levels)
        mean = theory.expected_variance(levels, density)
        answer.add("optimal_expected_variance", "  mean over the data", mean)
        if s >= 1:
            ratio = theory.expected_optimal_ratio(density, s)
            answer.add("expected_optimal_ratio", "best ratio for the data", ratio)
    return answer.show(json=json)
