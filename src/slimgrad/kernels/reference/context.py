"""rANS with the symbol before as the context, blocks of 512 side by side; see rans.py."""

from __future__ import annotations

from itertools import pairwise

import torch

from slimgrad.kernels.reference.packing import BLOCK, pack_symbols, unpack_symbols
from slimgrad.kernels.reference.rans import (
    CHUNK,
    LEAST_STATE,
    STATES,
    TOTAL,
    WordQueue,
    finished_chunk,
    from_little_endian,
    little_endian,
    pull,
    push,
    read_states,
)
from slimgrad.kernels.reference.symbol_counts import counted_blocks

CONTEXT_BITS = 4


def dropped_bits(bits: int) -> int:
    """Low bits of a symbol that its context for the next one leaves out."""
    return max(bits - CONTEXT_BITS, 0)


def context_count(bits: int) -> int:
    """Contexts there are: 2**bits, at most 16."""
    return 1 << min(bits, CONTEXT_BITS)


def context_counts(packed: torch.Tensor, n: int, bits: int, stride: int) -> torch.Tensor:
    """Occurrences of each symbol behind each context, int64 (contexts, 2**bits)."""
    blocks, tail = counted_blocks(packed, n, bits, stride)
    rows = [*blocks, tail] if len(tail) else list(blocks)
    counts = torch.zeros(context_count(bits) << bits, dtype=torch.int64)
    for row in rows:
        counts += torch.bincount((contexts_of(row, bits) << bits) | row, minlength=len(counts))
    return counts.view(-1, 1 << bits)


def contexts_of(block: torch.Tensor, bits: int) -> torch.Tensor:
    """The context of every symbol of a block: what is kept of the one before, 0 for the first."""
    return torch.cat([torch.zeros(1, dtype=torch.int64), block[:-1] >> dropped_bits(bits)])


def context_encode(packed: torch.Tensor, n: int, bits: int, tables: torch.Tensor) -> torch.Tensor:
    """Tables, sizes and chunks of ``n`` packed symbols; see slimgrad.kernels.context_encode."""
    symbols = unpack_symbols(packed, n, bits).long()
    chunks = [encode_chunk(part, tables, bits) for part in symbols.split(CHUNK)]
    sizes = torch.tensor([words for words, _ in chunks])
    content = [part for _, part in chunks]
    return torch.cat([little_endian(tables.flatten(), 2), little_endian(sizes, 4), *content])


def context_decode(payload: torch.Tensor, n: int, bits: int, places: list[int]) -> torch.Tensor:
    """The packed symbols of a payload whose chunks begin at ``places``; the last is the end."""
    tables = from_little_endian(payload[: 2 * context_count(bits) << bits], 2)
    tables = tables.view(-1, 1 << bits)
    decoded = [
        decode_chunk(payload[start:end], min(CHUNK, n - i * CHUNK), tables, bits, start)
        for i, (start, end) in enumerate(pairwise(places))
    ]
    return pack_symbols(torch.cat(decoded).to(torch.uint8), bits)


def rounds_of(symbols: torch.Tensor) -> list[tuple[torch.Tensor, torch.Tensor]]:
    """The blocks of a chunk, as many as there are states at a time, one a row; and their lengths.

    Only the last block of all can be shorter than its row, so that where some blocks of a round
    have a component e those are the first ones.
    """
    count = -(-len(symbols) // BLOCK)
    padded = torch.nn.functional.pad(symbols, (0, count * BLOCK - len(symbols)))
    lengths = torch.full((count,), BLOCK)
    lengths[-1] -= len(padded) - len(symbols)
    return list(zip(padded.view(-1, BLOCK).split(STATES), lengths.split(STATES), strict=True))


def encode_chunk(
    symbols: torch.Tensor, tables: torch.Tensor, bits: int
) -> tuple[int, torch.Tensor]:
    """Number of words of a chunk, and its states and words as bytes."""
    starts = tables.cumsum(1) - tables
    rounds = rounds_of(symbols)
    states = torch.full((len(rounds[0][0]),), LEAST_STATE)
    words = []
    for blocks, lengths in reversed(rounds):
        contexts = torch.stack([contexts_of(block, bits) for block in blocks])
        for e in reversed(range(BLOCK)):
            now = int((e < lengths).sum())
            symbol, context = blocks[:now, e], contexts[:now, e]
            used = states[:now]
            word, used[:] = push(used, tables[context, symbol], starts[context, symbol])
            words.append(word)
    return finished_chunk(states, words)


def decode_chunk(
    chunk: torch.Tensor, count: int, tables: torch.Tensor, bits: int, position: int
) -> torch.Tensor:
    """The ``count`` symbols of a chunk; FrameError at ``position`` when it is no encoder's."""
    starts = tables.cumsum(1) - tables
    every_symbol = torch.arange(tables.shape[1])
    symbol_of_slot = torch.stack([torch.repeat_interleave(every_symbol, row) for row in tables])
    rounds = rounds_of(torch.zeros(count, dtype=torch.int64))
    states = read_states(chunk[: 4 * len(rounds[0][0])], position)
    stream = WordQueue(from_little_endian(chunk[4 * len(states) :], 2), position)
    for blocks, lengths in rounds:
        context = torch.zeros(len(blocks), dtype=torch.int64)
        for e in range(BLOCK):
            now = int((e < lengths).sum())
            x, behind = states[:now], context[:now]
            slot = x & (TOTAL - 1)
            symbol = symbol_of_slot[behind, slot]
            x[:] = pull(x, tables[behind, symbol], slot - starts[behind, symbol], stream)
            blocks[:now, e] = symbol
            behind[:] = symbol >> dropped_bits(bits)
    stream.check_end(states)
    return torch.cat([blocks.flatten() for blocks, _ in rounds])[:count]
