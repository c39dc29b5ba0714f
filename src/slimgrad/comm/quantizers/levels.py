"""Levels of one's own."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import ClassVar, final

from slimgrad.comm.quantizers.base import LevelGrid, Norm
from slimgrad.comm.quantizers.level import MAX_BITS, MIN_BITS, LevelQuantizer, float32_levels
from slimgrad.core.errors import ConfigError
from slimgrad.theory.arguments import checked_grid


@final
@dataclass(frozen=True)
class Levels(LevelQuantizer):
    """Round to any ascending levels from 0 to 1, for example optimal ones.

    Q(v)_i = norm(v) sign(v_i) h_i with h_i one of the two levels around |v_i| / norm(v).

    Guarantee: unbiased (to the resolution named in ``LevelQuantizer``); relative variance at most
    ``slimgrad.theory.variance_bound`` of the levels. The levels travel with every frame.

    Args:
        levels: 2 to 128 of them, the first 0, the last 1; rounded to float32.
        bucket_size: components that share a norm, >= 1.
        norm: "l2" or "linf", of the bucket.

    Attributes:
        bits: width of a symbol, the least that holds the levels and a sign.

    Raises:
        ConfigError: levels that do not ascend from 0 to 1, too many, or another value out of range.

    >>> Levels((0, 0.1, 0.3, 1)).bits
    3
    >>> from slimgrad.theory import MagnitudeDensity, optimal_levels
    >>> density = MagnitudeDensity([0.1] * 6 + [0.3] * 3 + [1.0])
    >>> [round(level, 3) for level in Levels(optimal_levels(density, 2)).levels]
    [0.0, 0.1, 0.3, 1.0]

    References:
        Ramezani-Kebrya, Faghri, Markov, Aksenov, Alistarh, Roy (2021), section 3.
    """

    name: ClassVar[str] = "levels"

    levels: Sequence[float]
    bucket_size: int = 512
    norm: Norm = "l2"
    bits: int = field(default=0, init=False, repr=False)

    def __post_init__(self) -> None:
        grid = checked_grid(self.levels)
        most = 2 ** (MAX_BITS - 1)
        if len(grid) > most:
            raise ConfigError(
                f"Levels needs 2 to {most} levels, which fit in {MAX_BITS} bits, got {len(grid)}"
            )
        object.__setattr__(self, "levels", float32_levels(grid, "Levels"))
        object.__setattr__(self, "bits", max(MIN_BITS, (len(grid) - 1).bit_length() + 1))
        self._check()

    @property
    def level_grid(self) -> LevelGrid:
        """The levels magnitudes are rounded to."""
        return LevelGrid("table", tuple(self.levels))
