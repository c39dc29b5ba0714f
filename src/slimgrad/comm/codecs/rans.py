"""Entropy codec: few bits for frequent symbols, by interleaved rANS."""

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


@final
class Rans(Codec):
    """Symbols in little more bits than their entropy, whatever they are.

    A vector of n symbols takes about n (H + 0.013) bits and a table of 2**(bits + 4), where H is
    the entropy of its symbols; within 0.02 bit of H from H = 0.3 on for n of a million or more.

    Guarantee: lossless for any symbols. Large vectors of up to 4 bits are counted in part, which
    costs size when the rest is unlike it: 12 bits a symbol at worst.

    >>> Rans().payload_bounds(1000, 4)
    (548, 2548)

    References:
        Duda, 2013, "Asymmetric numeral systems", section 3; Giesen, 2014, "Interleaved entropy
        coders".
    """

    name: ClassVar[str] = "rans"
    code_id: ClassVar[int] = 2

    def encode(self, quantized: Quantized) -> torch.Tensor:
        """Table, sizes of chunks, and chunks; on the calling thread."""
        n, bits = quantized.symbols, quantized.bits
        counts = kernels.symbol_counts(quantized.packed, n, bits, stride=stride_of(n, bits))
        (table,) = frequencies(counts[None], every_symbol=bits <= MOST_SAMPLED_BITS)
        return kernels.rans_encode(quantized.packed, n, bits, table, serial=True)

    def decode(self, payload: torch.Tensor, n: int, bits: int) -> torch.Tensor:
        """The packed symbols again; on the calling thread.

        Raises:
            FrameError: not what an encoder writes for n symbols.
        """
        return kernels.rans_decode(payload, n, bits, serial=True)

    def payload_bounds(self, n: int, bits: int) -> tuple[int, int]:
        """Table, sizes and states, and on top of them at most 2 bytes a symbol."""
        return payload_bounds(n, 1, bits, run=1)

    def expected_bits(self, probabilities: torch.Tensor, bits: int) -> float:
        """The entropy, what rounding the frequencies adds, and what a chunk holds besides."""
        return expected_bits(probabilities[None], 1, bits, run=1)
