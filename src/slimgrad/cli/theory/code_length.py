"""``slimgrad theory code-length``: how many bits a bucket takes."""

from __future__ import annotations

from typing import Annotated

from slimgrad.cli.output import FLAG
from slimgrad.cli.theory.answer import Answer
from slimgrad.cli.theory.configuration import Choice, Configuration, Grid, grid_of
from slimgrad.cli.theory.data import components, symbol_probabilities

SCALE_BITS = 32


def code_length(
    *,
    choice: Choice = Configuration(),  # noqa: B008  frozen
    data: str | None = None,
    json: Annotated[bool, FLAG] = False,
) -> int:
    """How many bits a component takes, its share of the bucket's norm included.

    Args:
        choice: Which quantizer.
        data: Also for this data: gauss, laplace, or a .npy or .pt file.
        json: Print JSON on stdout and nothing else there.
    """
    from slimgrad import theory

    grid = grid_of(choice)
    n = grid.bucket_size
    answer = Answer(
        f"bits a component of {grid.name}",
        assumptions=("a bucket's norm takes 32 bits", "frame headers are not counted"),
    )
    answer.add("fixed_width_bits", "fixed width", grid.bits + SCALE_BITS / n, "always")
    _elias(answer, grid)
    if data is not None:
        vector, source = components(data, n)
        pmf = symbol_probabilities(vector, grid.levels, n, grid.norm)
        norm = SCALE_BITS / min(n, len(vector))
        independent = f"symbols one by one, {source}"
        answer.add("entropy_bits", "entropy", theory.entropy_bits(pmf) + norm, independent)
        answer.add("huffman_bits", "Huffman", theory.huffman_bits(pmf) + norm, "table not counted")
        answer.add("zeros", "share of zeros", float(pmf[0]))
    return answer.show(json=json)


def _elias(answer: Answer, grid: Grid) -> None:
    from slimgrad import theory

    n, label = grid.bucket_size, "Elias, positions and levels"
    if not grid.powers_of_half or grid.norm != "l2":
        answer.add("elias_bits_bound", label, None, "known for nuqsgd with ratio 1/2 and l2 norm")
        return
    bound = theory.elias_bits_bound(n, grid.s) / n
    answer.add("elias_bits_bound", label, bound, "at most, for every vector")
    printed = theory.theorem5_printed(n, grid.s)
    answer.add("theorem5_printed", "Theorem 5", printed / n, "o(1) dropped: no bound")
