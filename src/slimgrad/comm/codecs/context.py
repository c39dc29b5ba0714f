"""Entropy codec that foresees a symbol from the one before it."""

from __future__ import annotations

from typing import ClassVar, final

import torch

from slimgrad import kernels
from slimgrad.comm.codecs.base import Codec
from slimgrad.comm.codecs.frequencies import (
    MOST_SAMPLED_BITS,
    expected_bits,
    frequencies,
    stride_of,
)
from slimgrad.comm.quantizers.base import Quantized
from slimgrad.kernels.entropy_payload import payload_bounds
from slimgrad.kernels.reference.context import context_count
from slimgrad.kernels.reference.packing import BLOCK


@final
class Context(Codec):
    """Symbols in little more bits than their entropy given the symbol before.

    Neighbours in the gradient of a convolution are alike, so that this takes about a tenth less
    than ``rans`` there, and nothing less where they are independent. The tables take
    2**(bits + 8) bits from 4 bits on.

    Guarantee: as for ``rans``.

    >>> Context().payload_bounds(1000, 4)
    (524, 2524)

    References:
        Duda, 2013, "Asymmetric numeral systems", section 3.
    """

    name: ClassVar[str] = "context"
    code_id: ClassVar[int] = 3

    def encode(self, quantized: Quantized) -> torch.Tensor:
        """Tables, sizes of chunks, and chunks; on the calling thread."""
        packed, n, bits = quantized.packed, quantized.symbols, quantized.bits
        stride = stride_of(n, bits, context_count(bits))
        counts = kernels.context_counts(packed, n, bits, stride=stride)
        tables = frequencies(counts, every_symbol=bits <= MOST_SAMPLED_BITS).flatten()
        return kernels.context_encode(packed, n, bits, tables, serial=True)

    def decode(self, payload: torch.Tensor, n: int, bits: int) -> torch.Tensor:
        """The packed symbols again; on the calling thread.

        Raises:
            FrameError: not what an encoder writes for n symbols.
        """
        return kernels.context_decode(payload, n, bits, serial=True)

    def payload_bounds(self, n: int, bits: int) -> tuple[int, int]:
        """Tables, sizes and states, and on top of them at most 2 bytes a symbol."""
        return payload_bounds(n, context_count(bits), bits, run=BLOCK)

    def expected_bits(self, probabilities: torch.Tensor, bits: int) -> float:
        """As for ``rans`` if neighbours are independent, which is the most it can be."""
        count = context_count(bits)
        first = torch.zeros(count, dtype=torch.float64)
        for symbol, probability in enumerate(probabilities.tolist()):
            first[symbol * count >> bits] += probability
        return expected_bits(first[:, None] * probabilities, count, bits, run=BLOCK)
