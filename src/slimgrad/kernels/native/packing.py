"""The compiled packing kernels behind the reference's signatures."""

from __future__ import annotations

from types import ModuleType

import torch

from slimgrad.kernels.reference.packing import packed_bytes


def pack_symbols(
    module: ModuleType, symbols: torch.Tensor, bits: int, *, serial: bool
) -> torch.Tensor:
    """Packs uint8 symbols (n,), each below 2**bits, into uint8 (packed_bytes(n, bits),)."""
    packed = torch.empty(packed_bytes(len(symbols), bits), dtype=torch.uint8)
    module.pack_symbols(symbols, bits, serial, packed)
    return packed


def unpack_symbols(
    module: ModuleType, packed: torch.Tensor, n: int, bits: int, *, serial: bool
) -> torch.Tensor:
    """The ``n`` symbols (uint8) that pack_symbols packed."""
    symbols = torch.empty(n, dtype=torch.uint8)
    module.unpack_symbols(packed, bits, serial, symbols)
    return symbols
