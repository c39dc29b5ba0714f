"""Occurrences of symbols as the frequencies an entropy coder works with."""

from __future__ import annotations

import numpy as np
import torch

from slimgrad.kernels.entropy_payload import TOTAL, chunk_sizes, states, table_bytes
from slimgrad.kernels.reference.rans import CHUNK

MOST_STRIDE = 16
MOST_SAMPLED_BITS = 4
_SAMPLES = 1 << 14  # symbols that tell the frequencies of 16 others to a thousandth of a bit
_BITS_LOST_IN_A_STATE = 24.0  # of 32, what a state holds beyond what its symbols put there


def stride_of(n: int, bits: int, tables: int = 1) -> int:
    """One block of how many is counted: few symbols are told well by a part of the vector.

    >>> stride_of(10**6, 4), stride_of(10**5, 4), stride_of(10**6, 4, 16), stride_of(10**6, 8)
    (16, 6, 15, 1)
    """
    if bits > MOST_SAMPLED_BITS:
        return 1
    # Most of the symbols are in few of the tables.
    least = _SAMPLES if tables == 1 else 4 * _SAMPLES
    return min(MOST_STRIDE, max(1, n // least))


def frequencies(counts: torch.Tensor, *, every_symbol: bool) -> torch.Tensor:
    """Frequencies that add up to 4096 in each row, near the proportions of ``counts``.

    A symbol costs log2(4096 / frequency) bits. Each symbol that occurs gets at least 1, and of what
    rounding leaves over or takes too much each unit goes where it changes the total bits most, or
    least. The result is the same on every machine: the arithmetic is exact or a single division.

    Args:
        counts: int64 (rows, symbols), >= 0; a row of zeros counts as equal proportions.
        every_symbol: whether symbols that did not occur get at least 1 too.

    Returns:
        int64, of the shape of ``counts``.

    >>> frequencies(torch.tensor([[3, 1, 0, 0]]), every_symbol=True)
    tensor([[3070, 1024,    1,    1]])
    """
    occurred = counts.numpy().astype(np.int64)
    occurred = np.where(occurred.sum(1, keepdims=True) == 0, 1, occurred)
    least = np.ones_like(occurred) if every_symbol else np.minimum(occurred, 1)
    found = np.maximum(occurred * TOTAL // occurred.sum(1, keepdims=True), least)
    while (excess := found.sum(1) - TOTAL).any():
        give, take = excess < 0, excess > 0
        gain = np.where(found > 0, occurred / (2 * found + 1), -1.0)
        found[give, gain.argmax(1)[give]] += 1
        loss = np.where(found > least, occurred / np.maximum(2 * found - 1, 1), np.inf)
        found[take, loss.argmin(1)[take]] -= 1
    return torch.from_numpy(found)


def expected_bits(probabilities: torch.Tensor, tables: int, bits: int, run: int) -> float:
    """Expected bits a symbol of a whole chunk, with the table and all else that a payload holds.

    Args:
        probabilities: of symbols in each of the tables times that of the table, (tables, symbols).
        tables: number of tables.
        bits: width of a symbol.
        run: symbols that a state codes one after another.
    """
    counts = (probabilities.double() * 2**40).round().long()
    table = frequencies(counts, every_symbol=bits <= MOST_SAMPLED_BITS).double()
    cost = torch.where(counts > 0, torch.log2(TOTAL / table.clamp(min=0.5)), 0.0)
    symbols = float((probabilities.double() * cost).sum())
    (chunk,) = chunk_sizes(CHUNK)
    overhead = 8 * (table_bytes(tables, bits) + 4) + _BITS_LOST_IN_A_STATE * states(chunk, run)
    return symbols + overhead / chunk
