"""``slimgrad theory code-length``: how many bits a bucket takes."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

from slimgrad.cli.output import FLAG
from slimgrad.cli.theory.answer import Answer
from slimgrad.cli.theory.configuration import Choice, Configuration, Grid, grid_of
from slimgrad.cli.theory.data import components, symbol_probabilities
from slimgrad.cli.theory.published import theorem5_applies
from slimgrad.cli.theory.steps import bucket_bits

if TYPE_CHECKING:
    import numpy as np

SCALE_BITS = 32
WIDEST_BITS = 8
CODECS = {
    "rans": "rANS",
    "context": "context coder",
    "huffman_pairs": "Huffman pairs",
    "huffman": "Huffman",
    "elias_omega": "Elias omega",
}


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
    grid = grid_of(choice)
    n = grid.bucket_size
    answer = Answer(
        f"bits a component of {grid.name}",
        assumptions=(
            "a bucket's norm takes 32 bits",
            "frame headers are not counted, except where the whole frame is",
            "the means over data take components to be independent",
        ),
    )
    answer.add("fixed_width_bits", "fixed width", bucket_bits(grid, n, "fixed") / n, "always")
    _elias(answer, grid)
    if data is not None:
        _measured(answer, grid, data)
    return answer.show(json=json)


def _elias(answer: Answer, grid: Grid) -> None:
    from slimgrad import theory

    n, s = grid.bucket_size, grid.s
    bound = bucket_bits(grid, n, "elias") / n
    answer.add("elias_bits_bound", "Elias", bound, "at most, for every vector")
    if grid.powers_of_half and grid.norm == "l2" and theorem5_applies(s, n):
        printed = theory.theorem5_printed(n, s) / n
        answer.add("theorem5_printed", "Theorem 5 as printed", printed, "o(1) dropped: no bound")


def _measured(answer: Answer, grid: Grid, data: str) -> None:
    """What independent symbols, as frequent as in ``data``, take on average."""
    from slimgrad import theory

    vector, source = components(data, grid.bucket_size)
    pmf = symbol_probabilities(vector, grid.levels, grid.bucket_size, grid.norm)
    norm = SCALE_BITS / min(grid.bucket_size, len(vector))
    magnitudes = [pmf[0], *(pmf[1::2] + pmf[2::2])]
    elias = theory.expected_elias_bits(magnitudes) + norm
    answer.add("expected_elias_bits", "Elias, mean over the data", elias, source)
    answer.add("huffman_bits", "Huffman", theory.huffman_bits(pmf) + norm, "its table not counted")
    answer.add("entropy_bits", "entropy", theory.entropy_bits(pmf) + norm, "no code needs less")
    answer.add("zeros", "share of zeros", float(pmf[0]))
    _sent(answer, grid, vector)


def _sent(answer: Answer, grid: Grid, vector: np.ndarray) -> None:
    """What the library's own codecs make of the data, whole frames counted."""
    import torch

    from slimgrad.comm.compressor import Compressor
    from slimgrad.comm.quantizers import Levels

    if grid.bits > WIDEST_BITS or grid.bucket_size >= 2**31:
        return
    quantizer = Levels(grid.levels, grid.bucket_size, grid.norm)
    values = torch.from_numpy(vector).float()
    for codec, label in CODECS.items():
        frame = Compressor(quantizer, codec).compress(values, key="data", step=0)
        bits = 8 * frame.numel() / len(vector)
        answer.add(f"measured_{codec}_bits", f"{label}, as sent", bits, "the whole frame")
