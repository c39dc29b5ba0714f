"""Canonical prefix codes as strings of binary digits: the truth."""

from __future__ import annotations

from collections.abc import Sequence

import torch

from slimgrad.core.errors import FrameError
from slimgrad.kernels.reference.bit_string import DigitReader, payload_of
from slimgrad.kernels.reference.packing import BLOCK, pack_symbols, unpack_symbols

LONGEST = 12  # bits of a word
STREAMS = 8  # that take units in turn
CHUNK = 65536  # symbols whose streams stand together


def units_in_stream(count: int, stream: int, pairs: bool) -> int:
    """Units of ``count`` symbols that go to ``stream``: every eighth.

    >>> units_in_stream(35, 1, pairs=True)
    3
    """
    units = -(-count // 2) if pairs else count
    return (units - stream + STREAMS - 1) // STREAMS


def is_full_code(lengths: Sequence[int]) -> bool:
    """Whether these are the lengths of a full prefix code, or of one word of 1 bit.

    >>> is_full_code((1, 2, 2, 0)), is_full_code((0, 1)), is_full_code((2, 2))
    (True, True, False)
    """
    used = [length for length in lengths if length != 0]
    if not all(1 <= length <= LONGEST for length in used):
        return False
    return used == [1] or sum(1 << (LONGEST - length) for length in used) == 1 << LONGEST


def words_of(lengths: Sequence[int]) -> dict[int, str]:
    """The word of every unit: those of one length are consecutive, in the order of the units.

    >>> words_of((2, 1, 0, 2))
    {1: '0', 0: '10', 3: '11'}
    """
    words, code = {}, 0
    for length in range(1, LONGEST + 1):
        for unit, own in enumerate(lengths):
            if own == length:
                words[unit] = f"{code:0{length}b}"
                code += 1
        code <<= 1
    return words


def nibbles_of(lengths: Sequence[int]) -> torch.Tensor:
    """The lengths, two a byte, the first in the lower half."""
    octets = [low | high << 4 for low, high in zip(lengths[::2], lengths[1::2], strict=True)]
    return torch.tensor(octets, dtype=torch.uint8)


def huffman_count(packed: torch.Tensor, n: int, bits: int, pairs: bool, every: int) -> torch.Tensor:
    """How often each unit occurs; see :func:`slimgrad.kernels.huffman_count`."""
    blocks = unpack_symbols(packed, n, bits).split(BLOCK)[::every]
    units = _units_of(torch.cat(blocks), bits, pairs)
    return torch.bincount(units, minlength=1 << (2 * bits if pairs else bits))


def huffman_encode(
    packed: torch.Tensor, n: int, bits: int, lengths: Sequence[int], pairs: bool
) -> torch.Tensor | None:
    """The payload; see :func:`slimgrad.kernels.huffman_encode`."""
    words = words_of(lengths)
    symbols = unpack_symbols(packed, n, bits)
    sizes, streams = [], []
    for first in range(0, n, CHUNK):
        units = _units_of(symbols[first : first + CHUNK], bits, pairs).tolist()
        if not words.keys() >= set(units):
            return None
        for stream in range(STREAMS):
            digits = "".join(words[unit] for unit in units[stream::STREAMS])
            streams.append(payload_of(digits))
            sizes += [len(streams[-1]) % 256, len(streams[-1]) // 256]
    return torch.cat([nibbles_of(lengths), torch.tensor(sizes, dtype=torch.uint8), *streams])


def huffman_decode(payload: torch.Tensor, n: int, bits: int, pairs: bool) -> torch.Tensor:
    """The packed symbols; see :func:`slimgrad.kernels.huffman_decode`."""
    if n == 0:
        if len(payload):
            raise FrameError("no symbols take no bytes", 0)
        return payload
    table = 1 << (2 * bits if pairs else bits) >> 1
    chunks = [min(CHUNK, n - first) for first in range(0, n, CHUNK)]
    start = table + len(chunks) * 2 * STREAMS
    if len(payload) < start:
        raise FrameError("the payload ends within the sizes", len(payload))
    lengths = [nibble for octet in payload[:table].tolist() for nibble in (octet & 15, octet >> 4)]
    if not is_full_code(lengths):
        raise FrameError("the lengths are not those of a full code", 0)
    units_of = {word: unit for unit, word in words_of(lengths).items()}
    symbols, at = [], table
    for count in chunks:
        units = torch.empty(-(-count // 2) if pairs else count, dtype=torch.int64)
        for stream in range(STREAMS):
            low, high = payload[at : at + 2].tolist()
            end = start + low + 256 * high
            if end > len(payload):
                raise FrameError("a stream ends behind the payload", at)
            read = _units_read(payload[start:end], len(units[stream::STREAMS]), units_of)
            units[stream::STREAMS] = torch.tensor(read, dtype=torch.int64)
            start, at = end, at + 2
        symbols.append(_symbols_of(units, count, bits, pairs))
    if start != len(payload):
        raise FrameError("something follows the last stream", start)
    return pack_symbols(torch.cat(symbols), bits)


def _units_of(symbols: torch.Tensor, bits: int, pairs: bool) -> torch.Tensor:
    units = symbols.long()
    if pairs:
        units = torch.nn.functional.pad(units, (0, len(units) % 2))
        units = units[::2] | units[1::2] << bits
    return units


def _symbols_of(units: torch.Tensor, count: int, bits: int, pairs: bool) -> torch.Tensor:
    if not pairs:
        return units.to(torch.uint8)
    symbols = torch.stack([units & ((1 << bits) - 1), units >> bits], 1).flatten().to(torch.uint8)
    if symbols[count:].any():
        raise FrameError("a symbol follows the last", 0)
    return symbols[:count]


def _units_read(stream: torch.Tensor, count: int, units_of: dict[str, int]) -> list[int]:
    reader, units = DigitReader(stream), []
    while len(units) < count:
        word = ""
        while word not in units_of:
            word += str(reader.take(1))
            if len(word) > LONGEST:
                raise FrameError("a code word that is none", reader.byte)
        units.append(units_of[word])
    reader.require_end()
    return units
