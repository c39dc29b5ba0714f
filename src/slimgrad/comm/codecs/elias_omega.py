"""Elias omega codec: run lengths in the omega code."""

from __future__ import annotations

from typing import ClassVar, final

from slimgrad.comm.codecs.elias import Elias
from slimgrad.theory import omega_bits


@final
class EliasOmega(Elias):
    """Gaps and levels in the omega code, the one that NUQSGD's bound on bits is about.

    |c(1)| = 1 and |c(k)| = b + |c(b - 1)| for the b = floor(log2 k) + 1 binary digits of k.

    >>> EliasOmega().word_bits(1), EliasOmega().word_bits(2)
    (1, 3)

    References:
        Elias (1975), section V; Alistarh et al. (2017), "QSGD", appendix A; Ramezani-Kebrya et
        al. (2021), "NUQSGD", theorem 5.
    """

    name: ClassVar[str] = "elias_omega"
    code_id: ClassVar[int] = 6
    nanoseconds: ClassVar[float] = 5.8
    code: ClassVar[str] = "omega"

    @staticmethod
    def word_bits(k: int) -> int:
        """Length of the omega code word of k >= 1."""
        return omega_bits(k)
