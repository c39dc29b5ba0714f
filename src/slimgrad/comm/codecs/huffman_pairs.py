"""Huffman codec of pairs: one word for two neighbours."""

from __future__ import annotations

from typing import ClassVar, final

import torch

from slimgrad import kernels
from slimgrad.comm.codecs.prefix import PrefixCodec
from slimgrad.theory import huffman_bits


@final
class HuffmanPairs(PrefixCodec):
    """The best prefix code of at most 12 bits a word for pairs of neighbouring symbols.

    Bits a symbol: at least 1/2; half of what a bit of rounding costs one by one, and less where
    neighbours depend on each other, as in the kernels of a convolution. The table takes half a byte
    for each of 4**bits pairs. Symbols of more than 4 bits are coded one by one, as in "huffman".

    >>> HuffmanPairs().payload_bounds(1000, 4)
    (208, 896)

    References:
        Huffman (1952); the limit on lengths after Larmore, Hirschberg (1990).
    """

    name: ClassVar[str] = "huffman_pairs"
    code_id: ClassVar[int] = 8
    nanoseconds: ClassVar[float] = 0.8

    @staticmethod
    def is_paired(bits: int) -> bool:
        """Whether symbols of ``bits`` bits are narrow enough: a pair has at most 8 bits."""
        return bits <= 4

    def expected_bits_of_pairs(self, probabilities: torch.Tensor, bits: int) -> float:
        """Expected bits a symbol for probabilities (4**bits,) of neighbours, without the table."""
        if not self.is_paired(bits):
            return super().expected_bits_of_pairs(probabilities, bits)
        return huffman_bits(probabilities.double().numpy(), kernels.HUFFMAN_LIMIT_BITS) / 2
