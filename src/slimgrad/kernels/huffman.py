"""Prefix codes of at most 12 bits for packed symbols, one by one or in pairs of neighbours.

A unit is one symbol, or the pair of symbols 2i and 2i + 1 as first + second * 2**bits.
"""

from __future__ import annotations

from collections.abc import Sequence

import torch

from slimgrad.core.errors import ConfigError, FrameError
from slimgrad.kernels.backend import native_module
from slimgrad.kernels.checks import check_size, check_vector, is_integer
from slimgrad.kernels.packing import packed_bytes
from slimgrad.kernels.reference import huffman as reference

HUFFMAN_LIMIT_BITS = reference.LONGEST
_MOST_PAIR_BITS = 4
_SPARE_BYTES = 8  # the native encoder writes whole words
_LONGEST_CHUNK = reference.CHUNK * HUFFMAN_LIMIT_BITS // 8
_NO_WORD, _TOO_LONG = -1, -2


def huffman_count(
    packed: torch.Tensor, n: int, bits: int, *, pairs: bool, every: int = 1
) -> torch.Tensor:
    """How often each unit occurs in every ``every``th block of 512 symbols, from the first on.

    Args:
        packed: uint8 (packed_bytes(n, bits),), the lane-sliced symbols.
        n: symbols, >= 0.
        bits: width of a symbol, 1 to 8; 1 to 4 with ``pairs``.
        pairs: whether a unit is a pair; with an odd n the last has a second symbol 0.
        every: 1 to count all of them.

    Returns:
        int64 (2**bits,), or (4**bits,) with ``pairs``.

    Raises:
        ConfigError: sizes that do not agree, pairs of more than 4 bits, or ``every`` below 1.

    >>> from slimgrad.kernels import pack_symbols
    >>> packed = pack_symbols(torch.tensor([1, 2, 1], dtype=torch.uint8), bits=2)
    >>> huffman_count(packed, 3, 2, pairs=False)
    tensor([0, 2, 1, 0])
    >>> huffman_count(packed, 3, 2, pairs=True).nonzero().flatten()
    tensor([1, 9])
    """
    check_size("packed", packed, torch.uint8, packed_bytes(n, bits))
    values = _unit_values(bits, pairs)
    if not is_integer(every) or every < 1:
        raise ConfigError(f"every must be an integer >= 1, got {every!r}")
    packed = packed.contiguous()
    module = native_module()
    if module is None:
        return reference.huffman_count(packed, n, bits, pairs, every)
    counts = torch.zeros(values, dtype=torch.int64)
    module.huffman_count(packed, n, bits, pairs, every, counts)
    return counts


def huffman_encode(
    packed: torch.Tensor, n: int, bits: int, lengths: Sequence[int], *, pairs: bool
) -> torch.Tensor | None:
    """The units in canonical code words of the given lengths, behind a table of the lengths.

    The payload is a view of a larger buffer.

    Args:
        packed: as for huffman_count.
        n: symbols, >= 0.
        bits: width of a symbol.
        lengths: of every unit's word, 1 to 12, or 0 for a unit without a word; those of a full
            prefix code, or of a single unit with length 1. Unused where n is 0.
        pairs: whether a unit is a pair.

    Returns:
        The payload, uint8; None when a unit without a word occurs.

    Raises:
        ConfigError: sizes that do not agree, or lengths of no such code.

    >>> from slimgrad.kernels import pack_symbols
    >>> packed = pack_symbols(torch.tensor([1, 2, 1], dtype=torch.uint8), bits=2)
    >>> huffman_encode(packed, 3, 2, (0, 1, 1, 0), pairs=False)[:18].tolist()
    [16, 1, 1, 0, 1, 0, 1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0]
    >>> huffman_encode(packed, 3, 2, (1, 1, 0, 0), pairs=False) is None
    True
    """
    values = _unit_values(bits, pairs)
    check_size("packed", packed, torch.uint8, packed_bytes(n, bits))
    if n == 0:
        return torch.empty(0, dtype=torch.uint8)
    if len(lengths) != values or not reference.is_full_code(lengths):
        raise ConfigError(
            f"lengths must be {values} lengths of a full prefix code of at most "
            f"{HUFFMAN_LIMIT_BITS} bits, got {tuple(lengths)}"
        )
    packed = packed.contiguous()
    module = native_module()
    if module is None:
        return reference.huffman_encode(packed, n, bits, lengths, pairs)
    of_units = torch.tensor(lengths, dtype=torch.uint8)
    table = reference.nibbles_of(lengths)
    head = huffman_head_bytes(n, bits, pairs=pairs)
    most = huffman_bounds(n, bits, pairs=pairs)[1]
    # The longest payload is several times what one expects, and fresh memory is slow.
    for size in (min(most, head + len(packed) + _LONGEST_CHUNK), most):
        payload = torch.empty(size + _SPARE_BYTES, dtype=torch.uint8)
        payload[: len(table)] = table
        written = module.huffman_encode(packed, n, bits, pairs, of_units, head, payload)
        if written != _TOO_LONG:
            break
    return payload[:written] if written != _NO_WORD else None


def huffman_decode(payload: torch.Tensor, n: int, bits: int, *, pairs: bool) -> torch.Tensor:
    """The packed symbols that huffman_encode wrote.

    Args:
        payload: uint8, flat, any bytes.
        n: symbols, >= 0.
        bits: width of a symbol.
        pairs: as given to huffman_encode.

    Returns:
        uint8 (packed_bytes(n, bits),).

    Raises:
        ConfigError: a wrong kind of payload, or pairs of more than 4 bits.
        FrameError: bytes that huffman_encode does not write for n symbols.
    """
    check_vector("payload", payload, torch.uint8)
    _unit_values(bits, pairs)
    size = packed_bytes(n, bits)
    module = native_module()
    if module is None:
        return reference.huffman_decode(payload, n, bits, pairs)
    packed = torch.empty(size, dtype=torch.uint8)
    wrong = module.huffman_decode(payload.contiguous(), n, bits, pairs, packed)
    if wrong >= 0:
        raise FrameError(f"the code words are not those of {n} symbols", wrong)
    return packed


def huffman_head_bytes(n: int, bits: int, *, pairs: bool) -> int:
    """Bytes of the table of lengths and of the sizes of the streams.

    >>> huffman_head_bytes(100_000, 4, pairs=True)
    160
    """
    chunks = -(-n // reference.CHUNK)
    return _unit_values(bits, pairs) // 2 * bool(n) + chunks * 2 * reference.STREAMS


def huffman_bounds(n: int, bits: int, *, pairs: bool) -> tuple[int, int]:
    """The least and the most bytes of a payload: words of 1 bit, and of 12 bits, throughout.

    >>> huffman_bounds(100_000, 4, pairs=True)
    (6416, 75160)
    """
    least = most = huffman_head_bytes(n, bits, pairs=pairs)
    for count, times in ((reference.CHUNK, n // reference.CHUNK), (n % reference.CHUNK, 1)):
        for stream in range(reference.STREAMS):
            units = reference.units_in_stream(count, stream, pairs)
            least += times * ((units + 7) // 8)
            most += times * ((units * HUFFMAN_LIMIT_BITS + 7) // 8)
    return least, most


def _unit_values(bits: int, pairs: bool) -> int:
    if pairs and bits > _MOST_PAIR_BITS:
        raise ConfigError(f"pairs have symbols of at most {_MOST_PAIR_BITS} bits, got {bits}")
    return 1 << (2 * bits if pairs else bits)
