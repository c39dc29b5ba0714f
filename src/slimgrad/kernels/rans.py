"""Entropy coding of packed symbols without context, by interleaved rANS."""

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
from slimgrad.kernels.reference import rans as reference
from slimgrad.kernels.symbol_counts import symbol_counts


def rans_encode(
    packed: torch.Tensor, n: int, bits: int, frequencies: torch.Tensor, *, serial: bool = False
) -> torch.Tensor:
    """Packed symbols as a payload of about sum_s counts_s log2(4096 / frequencies_s) bits.

    Guarantee: every backend, instruction set and number of threads gives the same bytes, and
    rans_decode gives ``packed`` again. Beyond the sum above a chunk of 2**18 symbols takes 516
    bytes, of which a third hold part of the symbols, and the table 2 * 2**bits.

    Args:
        packed: uint8 (packed_bytes(n, bits),) on the CPU.
        n: symbols, >= 0.
        bits: width of a symbol, 1 to 8.
        frequencies: int64 (2**bits,), >= 0, adding up to 4096; at least 1 for every symbol that
            occurs.
        serial: use the calling thread only.

    Returns:
        The payload, uint8; empty without symbols.

    Raises:
        ConfigError: an argument outside the ranges above, or a symbol of frequency 0.

    >>> from slimgrad import kernels
    >>> packed = kernels.pack_symbols(torch.tensor([0, 0, 3, 0], dtype=torch.uint8), bits=2)
    >>> payload = rans_encode(packed, 4, 2, torch.tensor([3072, 0, 0, 1024]))
    >>> kernels.unpack_symbols(rans_decode(payload, 4, 2), 4, 2)
    tensor([0, 0, 3, 0], dtype=torch.uint8)

    References:
        Duda, 2013, "Asymmetric numeral systems", section 3; Giesen, 2014, "Interleaved entropy
        coders".
    """
    check_packed(packed, n, bits)
    table = check_frequencies(frequencies, 1, bits)
    if n == 0:
        return torch.empty(0, dtype=torch.uint8)
    packed = packed.contiguous()
    _check_presence(packed, n, bits, table[0])
    module = native_module()
    if module is None:
        return reference.rans_encode(packed, n, bits, table[0])
    return native.encode(
        module.rans_encode,
        packed,
        n,
        bits,
        table,
        bits_a_symbol=entropy(table[0]),
        serial=serial,
    )


def _check_presence(packed: torch.Tensor, n: int, bits: int, frequencies: torch.Tensor) -> None:
    missing = frequencies == 0
    if bool(missing.any()) and bool(symbol_counts(packed, n, bits)[missing].any()):
        raise ConfigError("a symbol of frequency 0 occurs; give it at least 1")


def rans_decode(payload: torch.Tensor, n: int, bits: int, *, serial: bool = False) -> torch.Tensor:
    """The packed symbols that rans_encode made a payload of.

    Memory is proportional to n, which the caller holds against the bounds of a payload's length;
    time is proportional to n whatever the bytes.

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
    table = read_tables(payload, 1, bits)
    places = read_places(payload, n, table_bytes(1, bits), run=1)
    module = native_module()
    if module is None:
        return reference.rans_decode(payload, n, bits, places.tolist())
    return native.decode(module.rans_decode, payload, places, n, bits, table, serial=serial)
