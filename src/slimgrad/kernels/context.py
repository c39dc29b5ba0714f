"""Entropy coding of packed symbols behind the symbol before, by interleaved rANS."""

from __future__ import annotations

import torch

from slimgrad.core.errors import ConfigError, FrameError
from slimgrad.kernels.backend import native_module
from slimgrad.kernels.entropy_payload import (
    check_frequencies,
    check_packed,
    check_payload,
    entropy,
    read_places,
    read_tables,
    table_bytes,
)
from slimgrad.kernels.native import rans as native
from slimgrad.kernels.reference import context as reference
from slimgrad.kernels.reference.context import context_count
from slimgrad.kernels.reference.packing import BLOCK
from slimgrad.kernels.symbol_counts import context_counts


def context_encode(
    packed: torch.Tensor, n: int, bits: int, frequencies: torch.Tensor, *, serial: bool = False
) -> torch.Tensor:
    """Packed symbols as a payload, each with the frequencies that belong to the one before it.

    The context of a symbol is the one before it in its block of 512, of which the four highest bits
    count, and 0 for the first. Payload and guarantee are as for rans_encode: about
    sum_{c, s} counts_cs log2(4096 / frequencies_cs) bits.

    Args:
        packed: uint8 (packed_bytes(n, bits),) on the CPU.
        n: symbols, >= 0.
        bits: width of a symbol, 1 to 8.
        frequencies: int64 (contexts * 2**bits,), the rows of 2**min(bits, 4) contexts one behind
            another, each as for rans_encode.
        serial: use the calling thread only.

    Returns:
        The payload, uint8; empty without symbols.

    Raises:
        ConfigError: an argument outside the ranges above, or a symbol of frequency 0.

    >>> from slimgrad import kernels
    >>> packed = kernels.pack_symbols(torch.tensor([0, 1, 1, 1], dtype=torch.uint8), bits=1)
    >>> payload = context_encode(packed, 4, 1, torch.tensor([2048, 2048, 1, 4095]))
    >>> kernels.unpack_symbols(context_decode(payload, 4, 1), 4, 1)
    tensor([0, 1, 1, 1], dtype=torch.uint8)

    References:
        Duda, 2013, "Asymmetric numeral systems", section 3.
    """
    check_packed(packed, n, bits)
    tables = check_frequencies(frequencies, context_count(bits), bits)
    if n == 0:
        return torch.empty(0, dtype=torch.uint8)
    packed = packed.contiguous()
    missing = tables == 0
    if bool(missing.any()) and bool(context_counts(packed, n, bits)[missing].any()):
        raise ConfigError("a symbol of frequency 0 occurs; give it at least 1")
    module = native_module()
    if module is None:
        return reference.context_encode(packed, n, bits, tables)
    return native.encode(
        module.context_encode,
        packed,
        n,
        bits,
        tables,
        bits_a_symbol=max(entropy(row) for row in tables),
        serial=serial,
    )


def context_decode(
    payload: torch.Tensor, n: int, bits: int, *, serial: bool = False
) -> torch.Tensor:
    """The packed symbols that context_encode made a payload of.

    Memory and time are as for rans_decode.

    Args:
        payload: flat uint8 on the CPU; any bytes.
        n: symbols, >= 0.
        bits: width of a symbol, 1 to 8.
        serial: use the calling thread only.

    Returns:
        uint8 (packed_bytes(n, bits),).

    Raises:
        ConfigError: an argument of another kind.
        FrameError: not what an encoder writes for n symbols, with the position in the payload.
    """
    check_payload(payload, n, bits)
    if n == 0:
        if len(payload):
            raise FrameError(f"no symbols take no bytes, not {len(payload)}", 0)
        return torch.empty(0, dtype=torch.uint8)
    payload = payload.contiguous()
    tables = read_tables(payload, context_count(bits), bits)
    places = read_places(payload, n, table_bytes(context_count(bits), bits), run=BLOCK)
    module = native_module()
    if module is None:
        return reference.context_decode(payload, n, bits, places.tolist())
    return native.decode(module.context_decode, payload, places, n, bits, tables, serial=serial)
