"""What a quantizer is, and what it makes."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import ClassVar, Literal

import torch

Norm = Literal["l2", "linf"]
Grid = Literal["uniform", "exponential", "table"]


@dataclass(frozen=True)
class LevelGrid:
    """The magnitudes a normalised component is rounded to.

    Attributes:
        grid: how kernels may compute the rounding: "uniform" (j / s), "exponential"
            (0, 2**-s, ..., 1/2, 1) or "table" (anything).
        levels: ascending, from 0 to 1, both included.
    """

    grid: Grid
    levels: tuple[float, ...]


@dataclass(frozen=True)
class Quantized:
    """A vector of n components as symbols and one scale per bucket.

    Attributes:
        n: number of components.
        bits: width of a symbol; a sign bit above bits - 1 magnitude bits.
        bucket_size: components that share a scale; the last bucket may be shorter.
        grid: levels the magnitudes index.
        norm: norm the scales hold.
        scales: (ceil(n / bucket_size),) float32; NaN marks a bucket with a non-finite component.
        packed: uint8, the symbols in the lane-sliced layout of docs/wire-format.md.
        key: 64-bit key of the random stream the rounding used.
    """

    n: int
    bits: int
    bucket_size: int
    grid: LevelGrid
    norm: Norm
    scales: torch.Tensor
    packed: torch.Tensor
    key: int


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

    @abstractmethod
    def quantize(self, vector: torch.Tensor, key: int, *, serial: bool = False) -> Quantized:
        """Symbols and scales of a flat float32 ``vector``, with the random stream ``key``.

        With ``serial`` the work stays on the calling thread.
        """

    @abstractmethod
    def variance_bound(self, n: int) -> float:
        """Bound on E||Q(v) - v||^2 / ||v||^2 over all v of n components, for this configuration."""
