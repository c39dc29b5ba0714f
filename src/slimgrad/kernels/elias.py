"""Symbols as gaps, signs and levels in the universal codes of Elias, and back."""

from __future__ import annotations

import torch

from slimgrad.core.errors import ConfigError, FrameError
from slimgrad.core.registry import unknown_name_message
from slimgrad.kernels.backend import native_module
from slimgrad.kernels.checks import check_size, check_vector
from slimgrad.kernels.packing import packed_bytes
from slimgrad.kernels.reference import elias as reference

CODES = ("gamma", "delta", "omega")
ELIAS_SEGMENT = reference.SEGMENT
_SPARE_BYTES = 8  # the native encoder writes whole words


def elias_encode(packed: torch.Tensor, n: int, bits: int, code: str) -> torch.Tensor:
    """Every symbol other than 0 as the gap to the one before it, a sign bit and its level.

    Gaps count from the beginning of each segment of 65,536 symbols; one more gap, to the place
    behind its last symbol, closes the segment. The payload is a view of a larger buffer.

    Args:
        packed: uint8 (packed_bytes(n, bits),), the lane-sliced symbols.
        n: symbols, >= 0.
        bits: width of a symbol, 1 to 8.
        code: "gamma", "delta" or "omega": the code of gaps and levels.

    Returns:
        The payload, uint8.

    Raises:
        ConfigError: another code, or sizes that do not agree.

    >>> from slimgrad.kernels import pack_symbols
    >>> packed = pack_symbols(torch.tensor([0, 3, 0, 9], dtype=torch.uint8), bits=4)
    >>> payload = elias_encode(packed, 4, 4, "omega")
    >>> "".join(f"{octet:08b}" for octet in payload.tolist())
    '1000110100100000'

    References:
        Elias (1975); Alistarh et al. (2017), "QSGD", appendix A.
    """
    _check_code(code)
    check_size("packed", packed, torch.uint8, packed_bytes(n, bits))
    packed = packed.contiguous()
    module = native_module()
    if module is None:
        return reference.elias_encode(packed, n, bits, code)
    most = elias_bytes_bound(n, bits, code)
    payload = torch.empty(most + _SPARE_BYTES, dtype=torch.uint8)
    return payload[: module.elias_encode(packed, n, bits, CODES.index(code), payload)]


def elias_decode(payload: torch.Tensor, n: int, bits: int, code: str) -> torch.Tensor:
    """The packed symbols that elias_encode wrote.

    Args:
        payload: uint8, flat, any bytes.
        n: symbols, >= 0.
        bits: width of a symbol, 1 to 8.
        code: as given to elias_encode.

    Returns:
        uint8 (packed_bytes(n, bits),).

    Raises:
        ConfigError: another code, or a wrong kind of payload.
        FrameError: bytes that elias_encode does not write for n symbols.

    >>> payload = torch.tensor([0b10001101, 0b00100000], dtype=torch.uint8)
    >>> from slimgrad.kernels import unpack_symbols
    >>> unpack_symbols(elias_decode(payload, 4, 4, "omega"), 4, 4)
    tensor([0, 3, 0, 9], dtype=torch.uint8)
    """
    _check_code(code)
    check_vector("payload", payload, torch.uint8)
    size = packed_bytes(n, bits)
    module = native_module()
    if module is None:
        return reference.elias_decode(payload, n, bits, code)
    packed = torch.empty(size, dtype=torch.uint8)
    wrong = module.elias_decode(payload.contiguous(), n, bits, CODES.index(code), packed)
    if wrong >= 0:
        raise FrameError(f"the code words are not those of {n} symbols", wrong)
    return packed


def elias_bytes_bound(n: int, bits: int, code: str) -> int:
    """The most bytes that ``n`` symbols take: every one has the gap 1 and the longest level.

    A longer gap takes fewer bits for each of the symbols that it spans.

    >>> elias_bytes_bound(4, 4, "omega")
    5
    """
    longest = len(reference.word_of(code, 1 << (bits - 1)))
    return (n * (2 + longest) + -(-n // ELIAS_SEGMENT) + 7) // 8


def _check_code(code: str) -> None:
    if code not in CODES:
        raise ConfigError(unknown_name_message("code of Elias", code, CODES))
