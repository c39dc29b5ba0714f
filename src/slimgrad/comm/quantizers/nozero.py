"""Grids without a zero, as the code published with NUQSGD uses them."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache
from itertools import pairwise
from typing import ClassVar, Literal, final

import torch

from slimgrad import kernels
from slimgrad.comm.quantizers.base import LevelGrid, Norm, Quantized, Quantizer
from slimgrad.comm.quantizers.level import (
    PROBABILITY_RESOLUTION,
    check_norm,
    check_symbols,
    float32_levels,
)
from slimgrad.core.errors import ConfigError
from slimgrad.core.registry import unknown_name_message
from slimgrad.theory import exponential_levels, no_zero_variance_bound

Kind = Literal["exponential", "uniform"]
KINDS = ("exponential", "uniform")


@final
@dataclass(frozen=True)
class NoZero(Quantizer):
    """Round to 2**bits signed levels of which none is zero; zeros come out as noise.

    Levels are +-ratio**j, j = 0 .. 2**(bits - 1) - 1 ("exponential") or the odd multiples of
    1 / (2**bits - 1) up to 1 ("uniform"). Between -l_1 and l_1 the sign is drawn.

    These are the grids of the reference code, not of the paper, and kept to reproduce its figures:
    a zero costs l_1^2, so that the relative variance of sparse buckets grows with their length.

    Guarantee: unbiased (to the resolution named in ``LevelQuantizer``), except that a bucket of
    zeros stays zero; relative variance at most ``slimgrad.theory.no_zero_variance_bound``.

    Args:
        kind: "exponential" or "uniform".
        bits: width of a symbol with its sign, 1 to 8.
        bucket_size: components that share a norm, >= 1.
        norm: "l2" or "linf", of the bucket.
        ratio: quotient of neighbouring exponential levels, 0 < ratio < 1; unused if "uniform".

    Raises:
        ConfigError: a value out of range, or levels that float32 cannot hold.

    >>> NoZero("exponential", bits=3).level_grid.levels
    (0.125, 0.25, 0.5, 1.0)
    >>> [round(15 * level) for level in NoZero("uniform", bits=4).level_grid.levels]
    [1, 3, 5, 7, 9, 11, 13, 15]

    References:
        The code of Ramezani-Kebrya, Faghri, Markov, Aksenov, Alistarh, Roy (2021).
    """

    name: ClassVar[str] = "nozero"
    unbiased = True

    kind: Kind = "exponential"
    bits: int = 4
    bucket_size: int = 512
    norm: Norm = "l2"
    ratio: float = 0.5

    def __post_init__(self) -> None:
        check_symbols("NoZero", self.bits, self.bucket_size, least=1)
        check_norm(self.norm)
        if self.kind not in KINDS:
            raise ConfigError(unknown_name_message("kind of levels", self.kind, KINDS))
        if isinstance(self.ratio, bool) or not isinstance(self.ratio, int | float):
            raise ConfigError(f"NoZero needs a ratio between 0 and 1, got ratio={self.ratio!r}")
        _ = self.level_grid

    @property
    def level_grid(self) -> LevelGrid:
        """The magnitudes components are rounded to."""
        return LevelGrid("no_zero", _levels(self.kind, self.bits, self.ratio))

    def quantize(self, vector: torch.Tensor, key: int, *, serial: bool = False) -> Quantized:
        """Symbols and scales of a flat float32 ``vector``, with the random stream ``key``."""
        grid = self.level_grid
        scales, packed = kernels.quantize_no_zero(
            vector,
            levels=grid.levels,
            norm=self.norm,
            bucket_size=self.bucket_size,
            bits=self.bits,
            key=key,
            serial=serial,
        )
        return Quantized(
            vector.numel(), self.bits, self.bucket_size, grid, self.norm, scales, packed, key
        )

    def variance_bound(self, n: int) -> float:
        """Bound on E||Q(v) - v||^2 / ||v||^2 over all v of n components, for this configuration.

        That of ``slimgrad.theory``, plus what drawing probabilities in steps of 2**-16 can add:
        half a step times the squared width of the bin, which is 2 l_1 in the middle and at most
        ``steepest`` times a component outside.
        """
        if n == 0:
            return 0.0
        bucket, levels = min(n, self.bucket_size), self.level_grid.levels
        steepest = max(((high - low) / low for low, high in pairwise(levels)), default=0.0)
        drawn = PROBABILITY_RESOLUTION / 2 * (steepest**2 + bucket * (2 * levels[0]) ** 2)
        return no_zero_variance_bound(levels, bucket) + drawn


@cache
def _levels(kind: Kind, bits: int, ratio: float) -> tuple[float, ...]:
    count = 2 ** (bits - 1)
    if kind == "uniform":
        levels = tuple((2 * j + 1) / (2 * count - 1) for j in range(count))
    else:
        levels = exponential_levels(count - 1, ratio)[1:]
    return float32_levels((0.0, *levels), f"NoZero with bits={bits} and ratio={ratio}")[1:]
