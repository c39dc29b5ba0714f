"""Run-length coding in the universal codes of Elias, as strings of binary digits: the truth."""

from __future__ import annotations

from collections.abc import Iterator

import torch

from slimgrad.core.errors import FrameError
from slimgrad.kernels.reference.bit_string import DigitReader, payload_of
from slimgrad.kernels.reference.packing import pack_symbols, unpack_symbols

SEGMENT = 65536  # symbols whose gaps are counted from one beginning
LONGEST_NUMBER = 17  # digits of the longest gap, SEGMENT + 1


def word_of(code: str, k: int) -> str:
    """The code word of k >= 1.

    >>> [word_of(code, 5) for code in ("gamma", "delta", "omega")]
    ['00101', '01101', '101010']
    """
    digits = f"{k:b}"
    if code == "gamma":
        return "0" * (len(digits) - 1) + digits
    if code == "delta":
        return word_of("gamma", len(digits)) + digits[1:]
    word = "0"
    while k > 1:
        digits = f"{k:b}"
        word = digits + word
        k = len(digits) - 1
    return word


def elias_encode(packed: torch.Tensor, n: int, bits: int, code: str) -> torch.Tensor:
    """The payload; see :func:`slimgrad.kernels.elias_encode`."""
    symbols = unpack_symbols(packed, n, bits)
    words: list[str] = []
    for first in range(0, n, SEGMENT):
        part = symbols[first : first + SEGMENT]
        last = 0
        for position in (part.nonzero().flatten() + 1).tolist():
            words.append(word_of(code, position - last))
            words.append(_symbol_word(code, bits, int(part[position - 1])))
            last = position
        words.append(word_of(code, len(part) + 1 - last))
    return payload_of("".join(words))


def elias_decode(payload: torch.Tensor, n: int, bits: int, code: str) -> torch.Tensor:
    """The packed symbols; see :func:`slimgrad.kernels.elias_decode`."""
    symbols = torch.zeros(n, dtype=torch.uint8)
    reader = DigitReader(payload)
    for first in range(0, n, SEGMENT):
        for position, symbol in _segment(reader, min(n - first, SEGMENT), bits, code):
            symbols[first + position - 1] = symbol
    reader.require_end()
    return pack_symbols(symbols, bits)


def _segment(reader: DigitReader, count: int, bits: int, code: str) -> Iterator[tuple[int, int]]:
    """Places, counted from 1, and values of the symbols of a segment that are not 0."""
    sign_bit = 1 << (bits - 1)
    position = 0
    while True:
        position += _number(reader, code)
        if position == count + 1:
            return
        sign = reader.take(1) * sign_bit
        level = _number(reader, code)
        symbol = sign | level % sign_bit
        if position > count or level > sign_bit or symbol == 0:
            raise FrameError("code words of no symbol", reader.byte)
        yield position, symbol


def _number(reader: DigitReader, code: str) -> int:
    """The number whose code word comes next, of at most 17 digits."""
    if code == "omega":
        value = 1
        while reader.take(1):
            if value + 1 > LONGEST_NUMBER:
                raise FrameError("a code word is too long", reader.byte)
            value = (1 << value) | reader.take(value)
        return value
    zeros = 0
    while not reader.take(1):
        zeros += 1
        if zeros >= LONGEST_NUMBER:
            raise FrameError("a code word is too long", reader.byte)
    value = (1 << zeros) | reader.take(zeros)
    if code == "gamma":
        return value
    if value > LONGEST_NUMBER:
        raise FrameError("a code word is too long", reader.byte)
    return (1 << (value - 1)) | reader.take(value - 1)


def _symbol_word(code: str, bits: int, symbol: int) -> str:
    """Sign and level. Magnitude 0, which then has the sign, is the last level."""
    sign_bit = 1 << (bits - 1)
    return f"{symbol >> (bits - 1)}{word_of(code, symbol % sign_bit or sign_bit)}"
