"""Interleaved range asymmetric numeral systems: symbols as a number of words that nears entropy.

A state x is an integer in [2**15, 2**31). Coding a symbol of frequency f, of TOTAL in all, whose
slots begin at c: first the low 16 bits of x are given away as a word if x >= f * 2**19, so that the
new state x // f * TOTAL + x mod f + c stays in range. Decoding undoes that, the last symbol coded
first: so the encoder goes from the last symbol to the first and its words are turned round.
Symbol e of a chunk belongs to state e mod 128; see docs/wire-format.md.
"""

from __future__ import annotations

from itertools import pairwise

import torch

from slimgrad.core.errors import FrameError
from slimgrad.kernels.reference.packing import pack_symbols, unpack_symbols

TOTAL_BITS = 12
TOTAL = 1 << TOTAL_BITS
STATES = 128
CHUNK = 1 << 18
LEAST_STATE = 1 << 15
WORD_BITS = 16
_FULL_BITS = 31 - TOTAL_BITS  # a state of f << 19 or more gives a word away


def rans_encode(packed: torch.Tensor, n: int, bits: int, frequencies: torch.Tensor) -> torch.Tensor:
    """Table, sizes and chunks of ``n`` packed symbols; see slimgrad.kernels.rans_encode."""
    if n == 0:
        return torch.empty(0, dtype=torch.uint8)
    symbols = unpack_symbols(packed, n, bits).long()
    chunks = [encode_chunk(part, frequencies) for part in symbols.split(CHUNK)]
    sizes = torch.tensor([words for words, _ in chunks])
    content = [part for _, part in chunks]
    return torch.cat([little_endian(frequencies, 2), little_endian(sizes, 4), *content])


def rans_decode(payload: torch.Tensor, n: int, bits: int, places: list[int]) -> torch.Tensor:
    """The packed symbols of a payload whose chunks begin at ``places``; the last is the end."""
    frequencies = from_little_endian(payload[: 2 << bits], 2)
    decoded = [
        decode_chunk(payload[start:end], min(CHUNK, n - i * CHUNK), frequencies, start)
        for i, (start, end) in enumerate(pairwise(places))
    ]
    symbols = torch.cat([torch.empty(0, dtype=torch.int64), *decoded])
    return pack_symbols(symbols.to(torch.uint8), bits)


def encode_chunk(symbols: torch.Tensor, frequencies: torch.Tensor) -> tuple[int, torch.Tensor]:
    """Number of words of a chunk, and its states and words as bytes."""
    starts = frequencies.cumsum(0) - frequencies
    states = torch.full((min(STATES, len(symbols)),), LEAST_STATE)
    words = []
    for row in reversed(symbols.split(STATES)):
        used = states[: len(row)]
        word, used[:] = push(used, frequencies[row], starts[row])
        words.append(word)
    return finished_chunk(states, words)


def finished_chunk(states: torch.Tensor, words: list[torch.Tensor]) -> tuple[int, torch.Tensor]:
    """The same from the last states and the words, those given away last at the end."""
    stream = torch.cat(words[::-1])
    return len(stream), torch.cat([little_endian(states, 4), little_endian(stream, 2)])


def decode_chunk(
    chunk: torch.Tensor, count: int, frequencies: torch.Tensor, position: int
) -> torch.Tensor:
    """The ``count`` symbols of a chunk; FrameError at ``position`` when it is no encoder's."""
    starts = frequencies.cumsum(0) - frequencies
    symbol_of_slot = torch.repeat_interleave(torch.arange(len(frequencies)), frequencies)
    used = min(STATES, count)
    states = read_states(chunk[: 4 * used], position)
    stream = WordQueue(from_little_endian(chunk[4 * used :], 2), position)
    symbols = torch.empty(count, dtype=torch.int64)
    for row in symbols.split(STATES):
        now = states[: len(row)]
        slot = now & (TOTAL - 1)
        row[:] = symbol_of_slot[slot]
        now[:] = pull(now, frequencies[row], slot - starts[row], stream)
    stream.check_end(states)
    return symbols


def push(
    states: torch.Tensor, frequency: torch.Tensor, start: torch.Tensor
) -> tuple[torch.Tensor, torch.Tensor]:
    """Codes one symbol in each state: the words given away, in order, and the new states."""
    full = states >= frequency << _FULL_BITS
    words = states[full] & 0xFFFF
    states = torch.where(full, states >> WORD_BITS, states)
    return words, (states // frequency << TOTAL_BITS) + states % frequency + start


def pull(
    states: torch.Tensor, frequency: torch.Tensor, offset: torch.Tensor, stream: WordQueue
) -> torch.Tensor:
    """The states before the symbols of this frequency and this place among its slots."""
    states = frequency * (states >> TOTAL_BITS) + offset
    low = states < LEAST_STATE
    states[low] = (states[low] << WORD_BITS) | stream.pop(int(low.sum()))
    return states


class WordQueue:
    """Words taken one after another; FrameError where an encoder's would not run out."""

    def __init__(self, words: torch.Tensor, position: int) -> None:
        self._words = words
        self._position = position

    def pop(self, count: int) -> torch.Tensor:
        """The next ``count`` words."""
        if count > len(self._words):
            raise FrameError("a chunk has too few words", self._position)
        taken, self._words = self._words[:count], self._words[count:]
        return taken

    def check_end(self, states: torch.Tensor) -> None:
        """FrameError unless all words are used and all states are those an encoder starts with."""
        if len(self._words) or bool((states != LEAST_STATE).any()):
            raise FrameError("a chunk does not end where an encoder begins", self._position)


def read_states(octets: torch.Tensor, position: int) -> torch.Tensor:
    """States of 4 bytes each; FrameError when one is out of range."""
    states = from_little_endian(octets, 4)
    if bool(((states < LEAST_STATE) | (states >= LEAST_STATE << WORD_BITS)).any()):
        raise FrameError("a state is not from 2**15 to 2**31 - 1", position)
    return states


def little_endian(numbers: torch.Tensor, width: int) -> torch.Tensor:
    """Non-negative integers as ``width`` bytes each, lowest first."""
    return (
        ((numbers.long()[:, None] >> torch.arange(0, 8 * width, 8)) & 255).to(torch.uint8).view(-1)
    )


def from_little_endian(octets: torch.Tensor, width: int) -> torch.Tensor:
    """The reverse, int64."""
    return (octets.view(-1, width).long() << torch.arange(0, 8 * width, 8)).sum(1)
