"""Rounding to a level grid, the part that NUQSGD, QSGD and their relatives share."""

from __future__ import annotations

import struct
from abc import abstractmethod
from collections.abc import Sequence
from itertools import pairwise

import torch

from slimgrad import kernels
from slimgrad.comm.quantizers.base import LevelGrid, Norm, Quantized, Quantizer
from slimgrad.core.errors import ConfigError
from slimgrad.core.registry import unknown_name_message
from slimgrad.kernels.checks import is_integer
from slimgrad.theory import rounding_resolution_bound, variance_bound
from slimgrad.theory.variance import NORMS

MIN_BITS, MAX_BITS = 2, 8
MAX_BUCKET_SIZE = 2**31 - 1
PROBABILITY_RESOLUTION = 2.0**-16
SMALLEST_LEVEL = 2.0**-126


def magnitudes(bits: int) -> int:
    """Number of non-zero magnitudes of a symbol of ``bits`` bits, one of them the sign.

    >>> magnitudes(4)
    7
    """
    return 2 ** (bits - 1) - 1


def float32_levels(levels: tuple[float, ...], source: str) -> tuple[float, ...]:
    """The levels as they travel and are computed with: rounded to float32.

    Raises:
        ConfigError: two neighbours become equal, or the smallest is below the normal range.

    >>> float32_levels((0.0, 0.1, 1.0), "example")
    (0.0, 0.10000000149011612, 1.0)
    """
    rounded = struct.unpack(f"<{len(levels)}f", struct.pack(f"<{len(levels)}f", *levels))
    distinct = all(low < high for low, high in pairwise(rounded))
    if not distinct or rounded[1] < SMALLEST_LEVEL:
        raise ConfigError(
            f"{source} has levels that float32 cannot tell apart (smallest {levels[1]:.3g}); "
            "take fewer bits or another ratio"
        )
    return rounded


class LevelQuantizer(Quantizer):
    """Unbiased stochastic rounding of each bucket, divided by its norm, to a grid of levels.

    Q(v)_i = norm(v) sign(v_i) h_i, where h_i is one of the two levels around |v_i| / norm(v) and
    has that mean. Unbiased up to the probability resolution: |E Q(v)_i - v_i| is at most 2**-17
    times the norm times the distance of the two levels, plus float32 rounding.

    Attributes:
        bits: width of a symbol, 2 to 8: a sign and 2**(bits - 1) - 1 non-zero magnitudes.
        bucket_size: components that share a norm.
        norm: "l2" or "linf", of the bucket.
    """

    unbiased = True
    norm: Norm

    @property
    @abstractmethod
    def level_grid(self) -> LevelGrid:
        """The levels magnitudes are rounded to."""

    def quantize(self, vector: torch.Tensor, key: int, *, serial: bool = False) -> Quantized:
        """Symbols and scales of a flat float32 ``vector``, with the random stream ``key``."""
        grid = self.level_grid
        scales, packed = kernels.quantize(
            vector,
            levels=grid.levels,
            grid=grid.grid,
            norm=self.norm,
            bucket_size=self.bucket_size,
            bits=self.bits,
            key=key,
            serial=serial,
        )
        return Quantized(
            n=vector.numel(),
            bits=self.bits,
            bucket_size=self.bucket_size,
            grid=grid,
            norm=self.norm,
            scales=scales,
            packed=packed,
            key=key,
        )

    def variance_bound(self, n: int) -> float:
        """Bound on E||Q(v) - v||^2 / ||v||^2 over all v of n components, for this configuration.

        The bound of ``slimgrad.theory.variance_bound`` for the longest bucket, plus what drawing
        probabilities in steps of 2**-16 can add. Holds up to float32 rounding.
        """
        bucket = min(n, self.bucket_size)
        levels = self.level_grid.levels
        return variance_bound(levels, bucket, self.norm) + rounding_resolution_bound(
            levels, bucket, PROBABILITY_RESOLUTION
        )

    def _check(self, norms: Sequence[str] = NORMS) -> None:
        check_symbols(type(self).__name__, self.bits, self.bucket_size)
        check_norm(self.norm, norms)


def check_symbols(name: str, bits: int, bucket_size: int, least: int = MIN_BITS) -> None:
    """ConfigError unless symbols of ``bits`` bits in such buckets can be sent.

    >>> check_symbols("NUQSGD", 4, 512)
    """
    if not is_integer(bits) or not least <= bits <= MAX_BITS:
        raise ConfigError(
            f"{name} needs bits from {least} to {MAX_BITS} (sign included), got bits={bits!r}"
        )
    if not is_integer(bucket_size) or not 1 <= bucket_size <= MAX_BUCKET_SIZE:
        raise ConfigError(
            f"{name} needs a bucket_size from 1 to {MAX_BUCKET_SIZE}, "
            f"got bucket_size={bucket_size!r}"
        )


def check_norm(norm: object, norms: Sequence[str] = NORMS) -> None:
    """ConfigError unless ``norm`` is one of ``norms``."""
    if norm not in norms:
        raise ConfigError(unknown_name_message("norm", norm, norms))
