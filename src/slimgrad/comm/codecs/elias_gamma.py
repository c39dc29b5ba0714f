"""Elias gamma codec: run lengths in the gamma code."""

from __future__ import annotations

from typing import ClassVar, final

from slimgrad.comm.codecs.elias import Elias
from slimgrad.theory import gamma_bits


@final
class EliasGamma(Elias):
    """Gaps and levels in the gamma code, the shortest for small numbers.

    |c(k)| = 2 floor(log2 k) + 1.

    >>> EliasGamma().word_bits(1), EliasGamma().word_bits(2)
    (1, 3)

    References:
        Elias (1975), "Universal codeword sets and representations of the integers".
    """

    name: ClassVar[str] = "elias_gamma"
    code_id: ClassVar[int] = 4
    nanoseconds: ClassVar[float] = 5.8
    code: ClassVar[str] = "gamma"

    @staticmethod
    def word_bits(k: int) -> int:
        """Length of the gamma code word of k >= 1."""
        return gamma_bits(k)
