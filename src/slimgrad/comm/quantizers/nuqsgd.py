"""NUQSGD: exponentially spaced levels."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache
from typing import ClassVar, final

from slimgrad.comm.quantizers.base import LevelGrid, Norm
from slimgrad.comm.quantizers.level import LevelQuantizer, float32_levels, magnitudes
from slimgrad.core.errors import ConfigError
from slimgrad.theory import exponential_levels


@final
@dataclass(frozen=True)
class NUQSGD(LevelQuantizer):
    """Round to levels 0, ratio**s, ..., ratio, 1: fine near zero, where most components lie.

    Q(v)_i = norm(v) sign(v_i) h_i with s = 2**(bits - 1) - 2 levels strictly between 0 and 1.

    Guarantee: unbiased (to the resolution named in ``LevelQuantizer``). For ratio 1/2, the l2
    norm and h = 2**-s sqrt(bucket_size) the relative variance is at most 1/8 + (2/9) h^2 for
    h <= 9/4 and h - 1 above; see ``slimgrad.theory.variance_bound`` for every other setting.

    Args:
        bits: width of a symbol with its sign, 2 to 8.
        bucket_size: components that share a norm, >= 1.
        norm: "l2" or "linf", of the bucket.
        ratio: quotient of neighbouring levels, 0 < ratio < 1.

    Raises:
        ConfigError: a value out of range.

    >>> NUQSGD(bits=3).level_grid.levels
    (0.0, 0.25, 0.5, 1.0)
    >>> round(NUQSGD(bits=4).variance_bound(512), 3)
    0.153

    References:
        Ramezani-Kebrya, Faghri, Markov, Aksenov, Alistarh, Roy (2021), "NUQSGD", section 3.
    """

    name: ClassVar[str] = "nuqsgd"

    bits: int = 4
    bucket_size: int = 512
    norm: Norm = "l2"
    ratio: float = 0.5

    def __post_init__(self) -> None:
        self._check()
        if isinstance(self.ratio, bool) or not isinstance(self.ratio, int | float):
            raise ConfigError(f"NUQSGD needs a ratio between 0 and 1, got ratio={self.ratio!r}")
        _ = self.level_grid

    @property
    def level_grid(self) -> LevelGrid:
        """The levels magnitudes are rounded to."""
        return _level_grid(self.bits, self.ratio)


@cache
def _level_grid(bits: int, ratio: float) -> LevelGrid:
    levels = exponential_levels(magnitudes(bits) - 1, ratio)
    kind = "exponential" if ratio == 0.5 else "table"
    return LevelGrid(kind, float32_levels(levels, f"NUQSGD with bits={bits} and ratio={ratio}"))
