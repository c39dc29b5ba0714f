"""Symbols packed in the lane-sliced layout of docs/wire-format.md, and unpacked."""

from __future__ import annotations

import torch

from slimgrad.core.errors import ConfigError
from slimgrad.kernels.backend import native_module
from slimgrad.kernels.checks import check_bits, check_count, check_size, check_vector
from slimgrad.kernels.native import packing as native
from slimgrad.kernels.reference import packing as reference


def packed_bytes(n: int, bits: int) -> int:
    """Bytes of ``n`` packed symbols: (n div 512) 64 bits + ceil((n mod 512) bits / 8).

    Raises:
        ConfigError: n below 0, or bits outside 1 to 8.

    >>> packed_bytes(513, 3)
    193
    """
    check_bits(bits)
    check_count(n)
    return reference.packed_bytes(n, bits)


def pack_symbols(symbols: torch.Tensor, bits: int, *, serial: bool = False) -> torch.Tensor:
    """Packs uint8 symbols (n,), each below 2**bits, into uint8 (packed_bytes(n, bits),).

    With ``serial`` the work stays on the calling thread, but for the check of the symbols.

    Raises:
        ConfigError: bits outside 1 to 8, or a symbol that does not fit.

    >>> pack_symbols(torch.tensor([1, 2, 3], dtype=torch.uint8), bits=4)
    tensor([33,  3], dtype=torch.uint8)
    """
    check_bits(bits)
    check_vector("symbols", symbols, torch.uint8)
    if len(symbols) > 0 and int(symbols.max()) >> bits:
        raise ConfigError(f"symbol {int(symbols.max())} does not fit in {bits} bits")
    module = native_module()
    if module is None:
        return reference.pack_symbols(symbols.contiguous(), bits)
    return native.pack_symbols(module, symbols.contiguous(), bits, serial=serial)


def unpack_symbols(
    packed: torch.Tensor, n: int, bits: int, *, serial: bool = False
) -> torch.Tensor:
    """The ``n`` symbols, uint8 (n,), that pack_symbols or quantize packed.

    With ``serial`` the work stays on the calling thread.

    Raises:
        ConfigError: bits outside 1 to 8, or a size that does not hold n symbols.

    >>> unpack_symbols(torch.tensor([33, 3], dtype=torch.uint8), n=3, bits=4)
    tensor([1, 2, 3], dtype=torch.uint8)
    """
    check_size("packed", packed, torch.uint8, packed_bytes(n, bits))
    module = native_module()
    if module is None:
        return reference.unpack_symbols(packed.contiguous(), n, bits)
    return native.unpack_symbols(module, packed.contiguous(), n, bits, serial=serial)


def quantized_buffers(
    n: int, bits: int, bucket_size: int, out: tuple[torch.Tensor, torch.Tensor] | None
) -> tuple[torch.Tensor, torch.Tensor]:
    """Where scales and packed symbols of n components go: ``out``, or new memory.

    Raises:
        ConfigError: ``out`` is not float32 and uint8 of the right sizes, contiguous.
    """
    buckets, size = -(-n // bucket_size), packed_bytes(n, bits)
    if out is None:
        return torch.empty(buckets, dtype=torch.float32), torch.empty(size, dtype=torch.uint8)
    scales, packed = out
    check_size("out[0]", scales, torch.float32, buckets)
    check_size("out[1]", packed, torch.uint8, size)
    if not scales.is_contiguous() or not packed.is_contiguous() or scales.requires_grad:
        raise ConfigError("out must be contiguous and without grad, it is written in place")
    return scales, packed
