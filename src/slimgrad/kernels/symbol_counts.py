"""How often every symbol occurs."""

from __future__ import annotations

import torch

from slimgrad.core.errors import ConfigError
from slimgrad.kernels.backend import native_module
from slimgrad.kernels.checks import is_integer
from slimgrad.kernels.entropy_payload import check_packed
from slimgrad.kernels.reference import context
from slimgrad.kernels.reference import symbol_counts as reference


def symbol_counts(packed: torch.Tensor, n: int, bits: int, *, stride: int = 1) -> torch.Tensor:
    """Occurrences of each symbol, in all blocks of 512 or in one of every ``stride``.

    Which block of a group of ``stride`` is counted goes round, so that a pattern in the vector
    meets all. The n mod 512 last symbols are always counted, a shorter last group may be left out.

    Args:
        packed: uint8 (packed_bytes(n, bits),) on the CPU.
        n: symbols, >= 0.
        bits: width of a symbol, 1 to 8.
        stride: blocks of which one is counted, >= 1.

    Returns:
        int64 (2**bits,).

    Raises:
        ConfigError: an argument outside the ranges above.

    >>> from slimgrad import kernels
    >>> packed = kernels.pack_symbols(torch.tensor([0, 3, 3], dtype=torch.uint8), bits=2)
    >>> symbol_counts(packed, 3, 2)
    tensor([1, 0, 0, 2])
    """
    check_packed(packed, n, bits)
    _check_stride(stride)
    packed = packed.contiguous()
    module = native_module()
    if module is None:
        return reference.symbol_counts(packed, n, bits, stride)
    counts = torch.empty(1 << bits, dtype=torch.int64)
    module.symbol_counts(packed, n, bits, stride, counts)
    return counts


def context_counts(packed: torch.Tensor, n: int, bits: int, *, stride: int = 1) -> torch.Tensor:
    """Occurrences of each symbol behind each context, in the blocks that symbol_counts counts.

    The context of a symbol is the one before it in its block of 512, of which the four highest bits
    count, and 0 for the first.

    Args:
        packed: uint8 (packed_bytes(n, bits),) on the CPU.
        n: symbols, >= 0.
        bits: width of a symbol, 1 to 8.
        stride: blocks of which one is counted, >= 1.

    Returns:
        int64 (2**min(bits, 4), 2**bits).

    Raises:
        ConfigError: an argument outside the ranges above.

    >>> from slimgrad import kernels
    >>> packed = kernels.pack_symbols(torch.tensor([0, 1, 1, 1], dtype=torch.uint8), bits=1)
    >>> context_counts(packed, 4, 1)
    tensor([[1, 1],
            [0, 2]])
    """
    check_packed(packed, n, bits)
    _check_stride(stride)
    packed = packed.contiguous()
    module = native_module()
    if module is None:
        return context.context_counts(packed, n, bits, stride)
    counts = torch.empty(context.context_count(bits) << bits, dtype=torch.int64)
    module.context_counts(packed, n, bits, stride, counts)
    return counts.view(-1, 1 << bits)


def _check_stride(stride: int) -> None:
    if not is_integer(stride) or not 1 <= stride <= 1 << 32:
        raise ConfigError(f"stride must be an integer from 1 to 2**32, got {stride!r}")
