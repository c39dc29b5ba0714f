"""Symbols packed in the lane-sliced layout of docs/wire-format.md, and unpacked."""

from __future__ import annotations

import torch
import triton
import triton.language as tl

from slimgrad.kernels.reference import packing as reference
from slimgrad.kernels.triton.device import check_flat

BLOCK = reference.BLOCK


@triton.jit
def _store_plane(symbols, out, LOW: tl.constexpr, WIDTH: tl.constexpr):
    """Dwords of one plane of a block of symbols (32, 16), behind ``out``."""
    shift = tl.arange(0, 32 // WIDTH) * WIDTH
    part = (symbols >> LOW) & ((1 << WIDTH) - 1)
    shared = tl.reshape(part, (WIDTH, 32 // WIDTH, 16)) << shift[None, :, None]
    dwords = tl.reshape(tl.sum(shared, axis=1), (WIDTH * 16,))  # no two share a bit: an or
    tl.store(out + tl.arange(0, WIDTH * 16), dwords)


@triton.jit
def store_block(symbols, packed, block, BITS: tl.constexpr):
    """Packs int32 symbols (32, 16) as block ``block`` of ``packed``, a pointer to int32."""
    out = packed + block * (16 * BITS)
    if BITS == 8:
        _store_plane(symbols, out, 0, 8)
    if BITS & 4:
        _store_plane(symbols, out, 0, 4)
    if BITS & 2:
        _store_plane(symbols, out + 16 * (BITS & 4), BITS & 4, 2)
    if BITS & 1:
        _store_plane(symbols, out + 16 * (BITS & 6), BITS & 6, 1)


@triton.jit
def _load_plane(packed, LOW: tl.constexpr, WIDTH: tl.constexpr):
    slot = tl.arange(0, 32)[:, None]
    lane = tl.arange(0, 16)[None, :]
    group = 32 // WIDTH
    dwords = tl.load(packed + slot // group * 16 + lane)
    return ((dwords >> (slot % group * WIDTH)) & ((1 << WIDTH) - 1)) << LOW


@triton.jit
def load_block(packed, block, BITS: tl.constexpr):
    """The int32 symbols (32, 16) of block ``block``; the reverse of store_block."""
    source = packed + block * (16 * BITS)
    symbols = tl.zeros((32, 16), tl.int32)
    if BITS == 8:
        symbols = _load_plane(source, 0, 8)
    if BITS & 4:
        symbols = _load_plane(source, 0, 4)
    if BITS & 2:
        symbols = symbols | _load_plane(source + 16 * (BITS & 4), BITS & 4, 2)
    if BITS & 1:
        symbols = symbols | _load_plane(source + 16 * (BITS & 6), BITS & 6, 1)
    return symbols


@triton.jit
def components(block):
    """The places (32, 16), int64, of the components of block ``block``."""
    place = tl.arange(0, 32)[:, None] * 16 + tl.arange(0, 16)[None, :]
    return block.to(tl.int64) * 512 + place


@triton.jit
def _pack_kernel(symbols, packed, BITS: tl.constexpr):
    block = tl.program_id(0)
    store_block(tl.load(symbols + components(block)).to(tl.int32), packed, block, BITS)


@triton.jit
def _unpack_kernel(packed, symbols, BITS: tl.constexpr):
    block = tl.program_id(0)
    tl.store(symbols + components(block), load_block(packed, block, BITS).to(tl.uint8))


def whole_blocks(packed: torch.Tensor, n: int, bits: int) -> torch.Tensor:
    """The part of ``packed`` that holds whole blocks, as int32."""
    return packed[: n // BLOCK * 64 * bits].view(torch.int32)


def rest_of(packed: torch.Tensor, n: int, bits: int) -> torch.Tensor:
    """The bytes behind the whole blocks."""
    return packed[n // BLOCK * 64 * bits :]


def pack_symbols(symbols: torch.Tensor, bits: int) -> torch.Tensor:
    """Packs uint8 symbols (n,), each below 2**bits, into uint8 (packed_bytes(n, bits),).

    Args:
        symbols: flat, contiguous; the last n mod 512 are packed by plain torch.
        bits: width of a symbol, 1 to 8.

    Raises:
        ConfigError: a tensor that is not flat uint8.
        BackendError: a tensor that is not on a GPU.
    """
    check_flat("symbols", symbols, torch.uint8)
    n = symbols.numel()
    size = reference.packed_bytes(n, bits)
    packed = torch.empty(size, dtype=torch.uint8, device=symbols.device)
    if n >= BLOCK:
        _pack_kernel[(n // BLOCK,)](symbols, whole_blocks(packed, n, bits), BITS=bits)
    tail = symbols[n // BLOCK * BLOCK :].cpu()
    rest_of(packed, n, bits).copy_(reference.pack_symbols(tail, bits))
    return packed


def unpack_symbols(packed: torch.Tensor, n: int, bits: int) -> torch.Tensor:
    """The ``n`` symbols, uint8 (n,), that pack_symbols packed.

    Args:
        packed: uint8 (packed_bytes(n, bits),), contiguous.
        n: how many symbols, >= 0.
        bits: width of a symbol, 1 to 8.

    Raises:
        ConfigError: a tensor that is not flat uint8.
        BackendError: a tensor that is not on a GPU.
    """
    check_flat("packed", packed, torch.uint8)
    symbols = torch.empty(n, dtype=torch.uint8, device=packed.device)
    if n >= BLOCK:
        _unpack_kernel[(n // BLOCK,)](whole_blocks(packed, n, bits), symbols, BITS=bits)
    tail = reference.unpack_symbols(rest_of(packed, n, bits).cpu(), n % BLOCK, bits)
    symbols[n // BLOCK * BLOCK :].copy_(tail)
    return symbols
