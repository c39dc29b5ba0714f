"""``slimgrad theory variance`` and ``worst-case``: what rounding adds, at most."""

from __future__ import annotations

from typing import Annotated

from slimgrad.cli.output import FLAG
from slimgrad.cli.theory.answer import Answer
from slimgrad.cli.theory.configuration import Choice, Configuration, Grid, grid_of
from slimgrad.cli.theory.data import components
from slimgrad.core.errors import ConfigError

ASSUMPTIONS = (
    "components are rounded independently and without bias to a neighbouring level",
    "each bucket is divided by its own norm; a shorter last bucket has less variance",
)


def variance(
    *,
    choice: Choice = Configuration(),  # noqa: B008  frozen
    data: str | None = None,
    json: Annotated[bool, FLAG] = False,
) -> int:
    """How much variance a quantizer adds, as a share of the squared norm.

    Args:
        choice: Which quantizer.
        data: Also the mean over this data: gauss, laplace, or a .npy or .pt file.
        json: Print JSON on stdout and nothing else there.
    """
    from slimgrad import theory
    from slimgrad.comm.quantizers.level import PROBABILITY_RESOLUTION

    grid = grid_of(choice)
    levels, n = grid.levels, grid.bucket_size
    answer = Answer(f"relative variance of {grid.name}", assumptions=ASSUMPTIONS)
    answer.add("levels", "levels", levels)
    answer.add("variance_bound", "bound", theory.variance_bound(levels, n, grid.norm))
    drawn = theory.rounding_resolution_bound(levels, n, PROBABILITY_RESOLUTION)
    answer.add("resolution_bound", "added by 16-bit random numbers, at most", drawn)
    if grid.norm == "l2":
        _l2_only(answer, grid)
    nonzeros = theory.expected_nonzeros_bound(levels, n, grid.norm)
    answer.add("expected_nonzeros_bound", "components sent as non-zero, at most", nonzeros)
    if data is not None:
        vector, source = components(data, n)
        density = theory.MagnitudeDensity.from_vector(vector, n, grid.norm)
        mean = theory.expected_variance(levels, density)
        answer.add("expected_variance", "mean over the data", mean, source)
    return answer.show(json=json)


def worst_case(
    *,
    choice: Choice = Configuration(),  # noqa: B008  frozen
    json: Annotated[bool, FLAG] = False,
) -> int:
    """The vector for which rounding adds most variance, and how much; l2 norm.

    Args:
        choice: Which quantizer.
        json: Print JSON on stdout and nothing else there.
    """
    from slimgrad import theory

    grid = grid_of(choice)
    if grid.norm != "l2":
        bound = theory.variance_bound(grid.levels, grid.bucket_size, grid.norm)
        raise ConfigError(
            f"worst-case knows the l2 norm, got {grid.norm}; for linf the bound of "
            f"slimgrad theory variance, here {bound:.6g}, is what there is"
        )
    levels, n = grid.levels, grid.bucket_size
    answer = Answer(f"largest relative variance of {grid.name}", assumptions=ASSUMPTIONS)
    relaxed = theory.worst_case_variance(levels, n, relaxed=True)
    try:
        worst = theory.worst_case(levels, n)
    except ConfigError:
        why = "too many to enumerate; the relaxed value is an upper bound"
        answer.add("worst_case_variance", "exact", None, why)
    else:
        answer.add("worst_case_variance", "exact", worst.variance)
        answer.add("counts", "components in each bin, from the bottom", worst.counts)
        answer.add("magnitudes", "their magnitudes", worst.magnitudes)
    answer.add("relaxed_variance", "relaxed: counts may be fractions", relaxed)
    answer.add("variance_bound", "closed form", theory.variance_bound(levels, n))
    return answer.show(json=json)


def _l2_only(answer: Answer, grid: Grid) -> None:
    from slimgrad import theory

    levels, n = grid.levels, grid.bucket_size
    relaxed = theory.worst_case_variance(levels, n, relaxed=True)
    answer.add("relaxed_variance", "largest, counts may be fractions", relaxed)
    answer.add(
        "variance_lower_bound", "some vector reaches", theory.variance_lower_bound(levels, n)
    )
    answer.add(
        "lp_variance_bound", "linear program", theory.lp_variance_bound(levels, n),
        "valid, but grows with the length of a bucket",
    )  # fmt: skip
    if grid.powers_of_half:
        printed = theory.theorem4_printed(grid.s, n)
        note = "as printed: not a bound" if printed < relaxed else "as printed; not always a bound"
        answer.add("theorem4_printed", "Theorem 4", printed, note)
