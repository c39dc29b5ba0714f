"""QSGD: equally spaced levels, Euclidean norm."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import ClassVar, final

from slimgrad.comm.quantizers.base import LevelGrid, Norm
from slimgrad.comm.quantizers.level import LevelQuantizer, magnitudes
from slimgrad.theory import uniform_levels


@final
@dataclass(frozen=True)
class QSGD(LevelQuantizer):
    """Round to levels 0, 1/s, 2/s, ..., 1 of the Euclidean norm of the bucket.

    Q(v)_i = ||v||_2 sign(v_i) h_i with s = 2**(bits - 1) - 1 non-zero levels.

    Guarantee: unbiased (to the resolution named in ``LevelQuantizer``). With B = bucket_size the
    relative variance is at most min(B / (4 s^2), the l2 bound of ``theory.variance_bound``).

    Args:
        bits: width of a symbol with its sign, 2 to 8.
        bucket_size: components that share a norm, >= 1.

    Raises:
        ConfigError: a value out of range.

    >>> QSGD(bits=3).level_grid.levels[1] == 1 / 3
    True
    >>> round(QSGD(bits=4).variance_bound(512), 2)
    2.23

    References:
        Alistarh, Grubic, Li, Tomioka, Vojnovic (2017), "QSGD", section 3.1.
    """

    name: ClassVar[str] = "qsgd"

    bits: int = 4
    bucket_size: int = 512
    norm: Norm = field(default="l2", init=False, repr=False)

    def __post_init__(self) -> None:
        self._check()

    @property
    def level_grid(self) -> LevelGrid:
        """The levels magnitudes are rounded to."""
        return LevelGrid("uniform", uniform_levels(magnitudes(self.bits)))
