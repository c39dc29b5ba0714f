"""The compiled entropy coders behind the reference's signatures."""

from __future__ import annotations

from collections.abc import Callable

import torch

from slimgrad.core.errors import FrameError
from slimgrad.kernels.reference.packing import packed_bytes
from slimgrad.kernels.reference.rans import CHUNK, STATES

_MARGIN = 2048  # vectors are stored whole, and the room is looked at once in 512 symbols
_SLACK = 1.125  # chunks differ a little


def encode(
    function: Callable[..., int],
    packed: torch.Tensor,
    n: int,
    bits: int,
    table: torch.Tensor,
    *,
    bits_a_symbol: float,
    serial: bool,
) -> torch.Tensor:
    """The payload: the frequencies in ``table``, sizes, and the chunks that ``function`` writes.

    ``bits_a_symbol`` is what the words are expected to take. Where they take much more, the room
    does not do and all is done again with as much as they can take.
    """
    count = -(-n // CHUNK)
    most = 2 * min(n, CHUNK)
    expected = int(_SLACK * bits_a_symbol / 8 * min(n, CHUNK)) + _MARGIN
    frequencies = table.flatten().to(torch.uint16)
    head = 2 * len(frequencies) + 4 * count
    words = torch.empty(count, dtype=torch.uint32)
    places = torch.empty(count, dtype=torch.int64)
    out, size = packed, -1
    for room in (min(expected, most), most):
        room += 4 * STATES
        # A fresh piece of memory costs time for every page, so that it should not be large.
        out = torch.empty(_MARGIN + head + count * room, dtype=torch.uint8)
        size = function(packed, n, bits, frequencies, serial, out[head:], room, words, places)
        if size >= 0:
            break
    payload = out[len(out) - size - head :]
    content = payload.numpy()
    content[: 2 * len(frequencies)].view("<u2")[:] = frequencies.numpy()
    content[2 * len(frequencies) : head].view("<u4")[:] = words.numpy()
    return payload


def decode(
    function: Callable[..., None],
    payload: torch.Tensor,
    places: torch.Tensor,
    n: int,
    bits: int,
    table: torch.Tensor,
    *,
    serial: bool,
) -> torch.Tensor:
    """The packed symbols; FrameError with the place of the first chunk that is no encoder's."""
    packed = torch.empty(packed_bytes(n, bits), dtype=torch.uint8)
    failed = torch.zeros(len(places) - 1, dtype=torch.uint8)
    frequencies = table.flatten().to(torch.uint16)
    function(payload, places, n, bits, frequencies, serial, packed, failed)
    if bool(failed.any()):
        chunk = int(failed.argmax())
        raise FrameError("a chunk is not what an encoder writes", int(places[chunk]))
    return packed
