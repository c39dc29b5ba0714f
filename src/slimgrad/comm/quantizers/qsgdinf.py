"""QSGDinf: equally spaced levels, maximum norm."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import ClassVar, final

from slimgrad.comm.quantizers.base import LevelGrid, Norm
from slimgrad.comm.quantizers.level import LevelQuantizer, magnitudes
from slimgrad.theory import uniform_levels


@final
@dataclass(frozen=True)
class QSGDinf(LevelQuantizer):
    """Round to levels 0, 1/s, 2/s, ..., 1 of the largest magnitude in the bucket.

    Q(v)_i = max|v| sign(v_i) h_i with s = 2**(bits - 1) - 1 non-zero levels.

    Guarantee: unbiased (to the resolution named in ``LevelQuantizer``). With B = bucket_size the
    relative variance is at most max(1/8, (sqrt(1 + (B - 1) / s^2) - 1) / 2), for s = 1 without
    the 1/8; never more than QSGD's for the same bits.

    Args:
        bits: width of a symbol with its sign, 2 to 8.
        bucket_size: components that share a norm, >= 1.

    Raises:
        ConfigError: a value out of range.

    >>> QSGDinf(bits=2).level_grid.levels
    (0.0, 1.0)
    >>> round(QSGDinf(bits=4).variance_bound(512), 2)
    1.19

    References:
        Alistarh, Grubic, Li, Tomioka, Vojnovic (2017), "QSGD", the variant scaled by the maximum.
    """

    name: ClassVar[str] = "qsgdinf"

    bits: int = 4
    bucket_size: int = 512
    norm: Norm = field(default="linf", init=False, repr=False)

    def __post_init__(self) -> None:
        self._check()

    @property
    def level_grid(self) -> LevelGrid:
        """The levels magnitudes are rounded to."""
        return LevelGrid("uniform", uniform_levels(magnitudes(self.bits)))
