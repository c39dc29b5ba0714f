"""Signs alone."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import ClassVar, final

import torch

from slimgrad import kernels
from slimgrad.comm.quantizers.base import LevelGrid, Norm, Quantized, Quantizer
from slimgrad.comm.quantizers.level import check_symbols


class SignQuantizer(Quantizer):
    """One bit a component, its sign, times a scale for each bucket; zero counts as plus.

    Not random: every stream gives the same frame.
    """

    unbiased = False
    bits = 1
    norm: ClassVar[Norm]

    def __post_init__(self) -> None:
        check_symbols(type(self).__name__, self.bits, self.bucket_size, least=1)

    @property
    def level_grid(self) -> LevelGrid:
        """The one magnitude."""
        return LevelGrid("no_zero", (1.0,))

    def quantize(self, vector: torch.Tensor, key: int, *, serial: bool = False) -> Quantized:
        """Symbols and scales of a flat float32 ``vector``; ``key`` is recorded and not used."""
        scales, packed = kernels.quantize_signs(
            vector, norm=self.norm, bucket_size=self.bucket_size, serial=serial
        )
        return Quantized(
            vector.numel(), 1, self.bucket_size, self.level_grid, self.norm, scales, packed, key
        )


@final
@dataclass(frozen=True)
class Sign(SignQuantizer):
    """signSGD: sign(v), whatever the size of v.

    Q(v)_i = sign(v_i), with sign(0) = 1. Meant for ``aggregate="majority"``, where the step is
    +-1 for every component.

    Guarantee: biased, and no bound on the error: the length of v is lost.

    Args:
        bucket_size: components that one NaN spoils together, >= 1.

    Raises:
        ConfigError: a value out of range.

    >>> Sign().variance_bound(512)
    inf

    References:
        Bernstein, Wang, Azizzadenesheli, Anandkumar (2018), "signSGD", algorithm 1.
    """

    name: ClassVar[str] = "sign"
    norm: ClassVar[Norm] = "unit"

    bucket_size: int = 8192

    def variance_bound(self, n: int) -> float:
        """Infinite, except for no components: nothing bounds ||sign(v) - v|| / ||v||."""
        return math.inf if n else 0.0
