"""What the two Huffman codecs share: counts, the best code for them, its table and its bits."""

from __future__ import annotations

from abc import abstractmethod

import numpy as np
import torch

from slimgrad import kernels
from slimgrad.comm.codecs.base import Codec
from slimgrad.comm.quantizers.base import Quantized
from slimgrad.theory import huffman_bits, huffman_lengths

# Blocks of 512 symbols that are counted at least, of vectors that have as many.
COUNTED_BLOCKS = 4096
# Words of 12 bits for units that may never occur: 1/32 of all there are.
MOST_UNSEEN = 128


class PrefixCodec(Codec):
    """A prefix code of at most 12 bits a word, the best for the counted units; table in front.

    Of long vectors every k-th block is counted, and a unit that was not seen but could occur still
    gets a word; all blocks are counted where that is not enough or costs too much.
    """

    @staticmethod
    @abstractmethod
    def is_paired(bits: int) -> bool:
        """Whether two symbols of ``bits`` bits have one word together."""

    def encode(self, quantized: Quantized) -> torch.Tensor:
        """The table of word lengths, the sizes of the streams, and the streams."""
        every = -(-quantized.symbols // 512) // COUNTED_BLOCKS
        payload = self._encode(quantized, every) if every > 1 else None
        if payload is None:
            payload = self._encode(quantized, 1)
        assert payload is not None  # all units were counted
        return payload

    def _encode(self, quantized: Quantized, every: int) -> torch.Tensor | None:
        packed, n, bits = quantized.packed, quantized.symbols, quantized.bits
        pairs = self.is_paired(bits)
        counts = kernels.huffman_count(packed, n, bits, pairs=pairs, every=every).numpy()
        if every > 1:
            unseen = (counts == 0) & _possible(quantized, pairs)
            if unseen.sum() > MOST_UNSEEN:
                return None
            counts = counts * every + unseen
        lengths = huffman_lengths(counts, kernels.HUFFMAN_LIMIT_BITS) if n else ()
        return kernels.huffman_encode(packed, n, bits, lengths, pairs=pairs)

    def decode(self, payload: torch.Tensor, n: int, bits: int) -> torch.Tensor:
        """The packed symbols again.

        Raises:
            FrameError: bytes that encode does not write for n symbols.
        """
        return kernels.huffman_decode(payload, n, bits, pairs=self.is_paired(bits))

    def payload_bounds(self, n: int, bits: int) -> tuple[int, int]:
        """Lengths when every word has 1 bit, and when every word has 12."""
        return kernels.huffman_bounds(n, bits, pairs=self.is_paired(bits))

    def overhead_bytes(self, n: int, bits: int) -> int:
        """The table of word lengths, and the sizes of the streams."""
        return kernels.huffman_head_bytes(n, bits, pairs=self.is_paired(bits))

    def expected_bits(self, probabilities: torch.Tensor, bits: int) -> float:
        """Expected bits a symbol when symbols are drawn independently, without the table."""
        p = probabilities.double().numpy()
        if self.is_paired(bits):
            return huffman_bits(np.outer(p, p).ravel(), kernels.HUFFMAN_LIMIT_BITS) / 2
        return huffman_bits(p, kernels.HUFFMAN_LIMIT_BITS)


def _possible(quantized: Quantized, pairs: bool) -> np.ndarray:
    """Which units a quantizer may write: of magnitudes that have a level, and no minus zero."""
    symbols = np.arange(1 << quantized.bits)
    sign_bit = 1 << (quantized.bits - 1)
    possible = symbols % sign_bit < len(quantized.grid.levels)
    if quantized.grid.grid != "no_zero":
        possible &= symbols != sign_bit
    return np.outer(possible, possible).ravel() if pairs else possible
