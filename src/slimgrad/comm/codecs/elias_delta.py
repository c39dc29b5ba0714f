"""Elias delta codec: run lengths in the delta code."""

from __future__ import annotations

from typing import ClassVar, final

from slimgrad.comm.codecs.elias import Elias
from slimgrad.theory import delta_bits


@final
class EliasDelta(Elias):
    """Gaps and levels in the delta code, which is short for long gaps.

    |c(k)| = b - 1 + |gamma(b)| for the b = floor(log2 k) + 1 binary digits of k.

    >>> EliasDelta().word_bits(1), EliasDelta().word_bits(2)
    (1, 4)

    References:
        Elias (1975), "Universal codeword sets and representations of the integers".
    """

    name: ClassVar[str] = "elias_delta"
    code_id: ClassVar[int] = 5
    nanoseconds: ClassVar[float] = 5.8
    code: ClassVar[str] = "delta"

    @staticmethod
    def word_bits(k: int) -> int:
        """Length of the delta code word of k >= 1."""
        return delta_bits(k)
