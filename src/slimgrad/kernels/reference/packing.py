"""Symbols of 2 to 8 bits packed in lane-sliced blocks: the layout of frame payloads.

A block holds 512 components: component e lies in dword lane e mod 16, slot e div 16. Its bits are
split in planes of 8, 4, 2 and 1 bits, low bits first; in a plane of width w, 32 / w slots share a
dword. So packing is a shift and an or of whole registers on any processor. The n mod 512 last
components are a plain bit string, lowest bit first.
"""

from __future__ import annotations

import torch

BLOCK = 512
LANES = 16


def plane_widths(bits: int) -> list[int]:
    """Widths of the planes that hold ``bits`` bits, that of the lowest bits first.

    >>> plane_widths(7)
    [4, 2, 1]
    """
    return [width for width in (8, 4, 2, 1) if bits & width]


def packed_bytes(n: int, bits: int) -> int:
    """Bytes that ``n`` symbols of ``bits`` bits take: (n div 512) 64 b + ceil((n mod 512) b / 8).

    >>> packed_bytes(1000, 4)
    500
    """
    return n // BLOCK * BLOCK * bits // 8 + (n % BLOCK * bits + 7) // 8


def pack_symbols(symbols: torch.Tensor, bits: int) -> torch.Tensor:
    """Packs uint8 symbols (n,), each below 2**bits, into uint8 (packed_bytes(n, bits),)."""
    whole = len(symbols) // BLOCK * BLOCK
    blocks = symbols[:whole].long().view(-1, BLOCK // LANES, LANES)
    planes, low = [], 0
    for width in plane_widths(bits):
        part = (blocks >> low) & ((1 << width) - 1)
        shared = part.view(len(blocks), width, 32 // width, LANES)
        dwords = (shared << torch.arange(0, 32, width)[:, None]).sum(2)
        planes.append(_bytes_of_dwords(dwords).view(len(blocks), width * BLOCK // 8))
        low += width
    body = torch.cat(planes, 1).flatten()
    return torch.cat([body, _pack_bit_string(symbols[whole:], bits)])


def unpack_symbols(packed: torch.Tensor, n: int, bits: int) -> torch.Tensor:
    """The ``n`` symbols (uint8) that pack_symbols packed."""
    count = n // BLOCK
    body = packed[: count * BLOCK * bits // 8].view(count, BLOCK * bits // 8)
    blocks = torch.zeros(count, BLOCK // LANES, LANES, dtype=torch.int64)
    low = 0
    for width in plane_widths(bits):
        plane = body[:, low * BLOCK // 8 : (low + width) * BLOCK // 8]
        dwords = _dwords_of_bytes(plane).view(count, width, 1, LANES)
        part = (dwords >> torch.arange(0, 32, width)[:, None]) & ((1 << width) - 1)
        blocks |= part.view(blocks.shape) << low
        low += width
    tail = _unpack_bit_string(packed[count * BLOCK * bits // 8 :], n % BLOCK, bits)
    return torch.cat([blocks.flatten().to(torch.uint8), tail])


def _bytes_of_dwords(dwords: torch.Tensor) -> torch.Tensor:
    """Little-endian bytes of non-negative 32-bit values held in int64; one more dimension of 4."""
    return ((dwords[..., None] >> torch.arange(0, 32, 8)) & 255).to(torch.uint8)


def _dwords_of_bytes(octets: torch.Tensor) -> torch.Tensor:
    """The reverse, over the last dimension."""
    quads = octets.reshape(len(octets), octets.shape[1] // 4, 4).long()
    return (quads << torch.arange(0, 32, 8)).sum(2)


def _pack_bit_string(symbols: torch.Tensor, bits: int) -> torch.Tensor:
    stream = ((symbols.long()[:, None] >> torch.arange(bits)) & 1).flatten()
    padded = torch.nn.functional.pad(stream, (0, -len(stream) % 8)).view(-1, 8)
    return (padded << torch.arange(8)).sum(1).to(torch.uint8)


def _unpack_bit_string(packed: torch.Tensor, n: int, bits: int) -> torch.Tensor:
    stream = ((packed.long()[:, None] >> torch.arange(8)) & 1).flatten()[: n * bits]
    return (stream.view(n, bits) << torch.arange(bits)).sum(1).to(torch.uint8)
