"""Occurrences of symbols, and of pairs of neighbours, in all or some of the blocks."""

from __future__ import annotations

import torch

from slimgrad.kernels.reference.packing import BLOCK, unpack_symbols


def symbol_counts(packed: torch.Tensor, n: int, bits: int, stride: int) -> torch.Tensor:
    """Occurrences of each symbol, int64 (2**bits,); see slimgrad.kernels.symbol_counts."""
    blocks, tail = counted_blocks(packed, n, bits, stride)
    return torch.bincount(torch.cat([blocks.flatten(), tail]), minlength=1 << bits)


def counted_blocks(
    packed: torch.Tensor, n: int, bits: int, stride: int
) -> tuple[torch.Tensor, torch.Tensor]:
    """The symbols of the whole blocks that are counted, one a row, and those behind the last."""
    symbols = unpack_symbols(packed, n, bits).long()
    whole = n // BLOCK
    blocks = symbols[: whole * BLOCK].view(whole, BLOCK)
    group = torch.arange(-(-whole // stride))
    chosen = group * stride + group * 7 % stride
    return blocks[chosen[chosen < whole]], symbols[whole * BLOCK :]
