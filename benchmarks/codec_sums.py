"""Messages of four ranks decoded and summed, against summing four float32 vectors."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial

import torch
from timing import Case

from slimgrad import kernels
from slimgrad.comm.quantizers import EDEN, NUQSGD, Dithered, QSGDinf

RANKS = 4


def cases(x: torch.Tensor) -> Iterator[Case]:
    """Cases of this group."""
    y = torch.zeros_like(x)
    vectors = [x.roll(rank) for rank in range(RANKS)]
    exact = f"sum of {RANKS} float32"
    yield Case(exact, partial(sum_exactly, y, vectors))
    for quantizer, asked in ((NUQSGD(), 1.1), (QSGDinf(), 1.1), (Dithered(), None), (EDEN(), None)):
        messages = [packed(quantizer, vector, rank) for rank, vector in enumerate(vectors)]
        work = partial(kernels.sum_packed_, y, messages, serial=True)
        yield Case(f"{quantizer.name} decode + sum of {RANKS}", work, asked, against=exact)
    messages = [packed(NUQSGD(), vector, rank) for rank, vector in enumerate(vectors)]
    again = partial(requantized, y, messages)
    yield Case(f"nuqsgd decode + sum of {RANKS} + quantize", again, 1.2, against=exact)


def sum_exactly(out: torch.Tensor, vectors: list[torch.Tensor]) -> torch.Tensor:
    """The sum in rank order, in pieces that stay in the cache."""
    size = 16384
    for start in range(0, len(out), size):
        part = out[start : start + size]
        torch.add(vectors[0][start : start + size], vectors[1][start : start + size], out=part)
        for vector in vectors[2:]:
            part.add_(vector[start : start + size])
    return out


def requantized(out: torch.Tensor, messages: list[kernels.PackedVector]) -> object:
    """The sum, quantized again."""
    return NUQSGD().quantize(kernels.sum_packed_(out, messages, serial=True), 9, serial=True)


def packed(quantizer, vector: torch.Tensor, key: int) -> kernels.PackedVector:
    """One rank's message."""
    made = quantizer.quantize(vector, key, serial=True)
    return kernels.PackedVector(
        made.transform,
        made.packed,
        made.scales,
        made.grid.levels,
        made.bits,
        made.bucket_size,
        made.key,
    )
