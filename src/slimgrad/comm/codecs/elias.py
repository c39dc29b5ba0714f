"""What the three codes of Elias share: run lengths, signs and levels of sparse symbols."""

from __future__ import annotations

from abc import abstractmethod
from typing import ClassVar

import torch

from slimgrad import kernels
from slimgrad.comm.codecs.base import Codec
from slimgrad.comm.quantizers.base import Quantized


class Elias(Codec):
    """Codes only the symbols that are not 0: gap to the one before, sign, level index.

    With c the code of integers, the payload of n <= 65,536 symbols with non-zero ones at places
    p_1 < ... < p_k (from 1) and level indices j_i has exactly

        sum_i (|c(p_i - p_{i-1})| + 1 + |c(j_i)|) + |c(n + 1 - p_k)|  bits, p_0 = 0,

    rounded up to a byte. Longer vectors are cut into segments of 65,536 symbols, one after another.
    No table; short when most symbols are 0, longer than a fixed width when few are.

    Attributes:
        code: the code of integers: "gamma", "delta" or "omega".
    """

    code: ClassVar[str]

    @staticmethod
    @abstractmethod
    def word_bits(k: int) -> int:
        """Length of the code word of k >= 1."""

    def encode(self, quantized: Quantized) -> torch.Tensor:
        """Code words of the symbols that are not 0, and of the end of each segment."""
        return kernels.elias_encode(quantized.packed, quantized.symbols, quantized.bits, self.code)

    def decode(self, payload: torch.Tensor, n: int, bits: int) -> torch.Tensor:
        """The packed symbols again.

        Raises:
            FrameError: bytes that encode does not write for n symbols.
        """
        return kernels.elias_decode(payload, n, bits, self.code)

    def payload_bounds(self, n: int, bits: int) -> tuple[int, int]:
        """Lengths when every symbol is 0, and when every symbol has the longest level word."""
        whole, rest = divmod(n, kernels.ELIAS_SEGMENT)
        least = whole * self.word_bits(kernels.ELIAS_SEGMENT + 1)
        least += self.word_bits(rest + 1) if rest else 0
        return (least + 7) // 8, kernels.elias_bytes_bound(n, bits, self.code)

    def expected_bits(self, probabilities: torch.Tensor, bits: int) -> float:
        """Expected bits a symbol when symbols are drawn independently.

        Gaps are then geometric: with q the probability of a symbol other than 0,
        q E|c(G)| + sum_s p_s (1 + |c(j_s)|), plus the end of the segment.
        """
        p = probabilities.double()
        sign_bit = 1 << (bits - 1)
        levels = [1 + self.word_bits(s % sign_bit or sign_bit) for s in range(1, 2 * sign_bit)]
        values = float((p[1:] * torch.tensor(levels, dtype=torch.float64)).sum())
        gap = self._mean_gap_bits(float(p[0]))
        return float(1 - p[0]) * gap + values + gap / kernels.ELIAS_SEGMENT

    def _mean_gap_bits(self, zero: float) -> float:
        """E|c(G)| for P(G > k) = zero^k, cut off behind the segment."""
        longest = kernels.ELIAS_SEGMENT + 1
        total, first = 0.0, 1
        # The length of a word depends on the number of digits alone.
        while first < longest:
            beyond = min(2 * first - 1, longest)
            total += self.word_bits(first) * (zero ** (first - 1) - zero**beyond)
            first *= 2
        return total + self.word_bits(longest) * zero ** (longest - 1)
