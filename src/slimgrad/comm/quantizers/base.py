"""What a quantizer is, and what it makes."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import ClassVar, Literal

import torch

Norm = Literal["l2", "linf", "step", "power_of_two", "mean", "projection", "unit"]
Grid = Literal["uniform", "exponential", "table", "no_zero", "integer"]
Transform = Literal["none", "dither", "rotation"]
ROTATION_BLOCK = 512


@dataclass(frozen=True)
class LevelGrid:
    """The magnitudes a normalised component is rounded to.

    Attributes:
        grid: how kernels may compute the rounding: "uniform" (j / s), "exponential"
            (0, 2**-s, ..., 1/2, 1), "table" (anything from 0 to 1), "no_zero" (anything above 0
            to 1, so that magnitude 0 is no zero) or "integer" (0, 1, ..., m).
        levels: ascending; the first is 0 and the last 1 except as said above.
    """

    grid: Grid
    levels: tuple[float, ...]


@dataclass(frozen=True)
class Quantized:
    """A vector of n components as symbols and one scale per bucket.

    Attributes:
        n: number of components.
        bits: width of a symbol, 1 to 8; a sign bit above bits - 1 magnitude bits.
        bucket_size: components that share a scale; the last bucket may be shorter.
        grid: levels the magnitudes index.
        norm: what the scales hold: the "l2" or "linf" norm, a "step" of integers, the
            "power_of_two" at or above the maximum, the "mean" magnitude, the factor of a
            "projection", or a "unit" of 1.
        scales: (ceil(n / bucket_size),) float32; NaN marks a bucket with a non-finite component.
        packed: uint8, the symbols in the lane-sliced layout of docs/wire-format.md.
        key: 64-bit key of the random stream the rounding, the dither or the rotation used.
        transform: what a reader undoes after the symbols are levels again: "none", the
            subtraction of a "dither", or a "rotation".
    """

    n: int
    bits: int
    bucket_size: int
    grid: LevelGrid
    norm: Norm
    scales: torch.Tensor
    packed: torch.Tensor
    key: int
    transform: Transform = "none"

    @property
    def symbols(self) -> int:
        """How many symbols there are: n, in whole blocks of 512 under a rotation."""
        return symbol_count(self.n, self.transform)


def symbol_count(n: int, transform: Transform) -> int:
    """How many symbols stand for n components.

    >>> symbol_count(700, "none"), symbol_count(700, "rotation")
    (700, 1024)
    """
    return n if transform != "rotation" else -(-n // ROTATION_BLOCK) * ROTATION_BLOCK


class Quantizer(ABC):
    """Rounds a vector to few levels.

    Attributes:
        name: registry name, equal to the file name.
        unbiased: whether the mean over the rounding is the vector itself.
    """

    name: ClassVar[str]
    unbiased: ClassVar[bool]
    bits: int
    bucket_size: int

    def for_tensor(self, name: str) -> Quantizer:
        """What quantizes the tensor ``name``: this, unless it adapts to each tensor."""
        return self

    @abstractmethod
    def quantize(self, vector: torch.Tensor, key: int, *, serial: bool = False) -> Quantized:
        """Symbols and scales of a flat float32 ``vector``, with the random stream ``key``.

        With ``serial`` the work stays on the calling thread.
        """

    @abstractmethod
    def variance_bound(self, n: int) -> float:
        """Bound on E||Q(v) - v||^2 / ||v||^2 over all v of n components, for this configuration."""
