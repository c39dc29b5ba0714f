"""Natural compression: the nearest powers of two, no norm."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import ClassVar, final

from slimgrad.comm.quantizers.base import LevelGrid, Norm
from slimgrad.comm.quantizers.level import PROBABILITY_RESOLUTION, LevelQuantizer, magnitudes
from slimgrad.theory import exponential_levels, rounding_resolution_bound, variance_bound


@final
@dataclass(frozen=True)
class Natural(LevelQuantizer):
    """Round the magnitude of each component to one of the two powers of two around it.

    Q(v)_i = sign(v_i) 2^k or sign(v_i) 2^(k+1) for |v_i| in [2^k, 2^(k+1)], the upper with
    probability |v_i| / 2^k - 1. What travels is the distance of the exponent from that of the
    bucket's scale, the least power of two not below the maximum; 127 exponents with 8 bits, and
    components under the smallest are rounded to 0 or to it.

    Guarantee: unbiased (to the resolution named in ``LevelQuantizer``); relative variance at most
    1/8 with 8 bits, whatever the bucket. A maximum above 2^127 is its own scale, because float32
    has no power of two above it.

    Args:
        bits: width of a symbol with its sign, 2 to 8.
        bucket_size: components that share a largest exponent, >= 1.

    Raises:
        ConfigError: a value out of range.

    >>> Natural().variance_bound(10**6) - 1 / 8 < 1e-4
    True

    References:
        Horvath, Ho, Horvath, Sahu, Canini, Richtarik (2019), "Natural compression", section 2.
    """

    name: ClassVar[str] = "natural"

    bits: int = 8
    bucket_size: int = 512
    norm: Norm = field(default="power_of_two", init=False, repr=False)

    def __post_init__(self) -> None:
        self._check(norms=("power_of_two",))

    @property
    def level_grid(self) -> LevelGrid:
        """The levels magnitudes are rounded to."""
        return LevelGrid("exponential", exponential_levels(magnitudes(self.bits) - 1))

    def variance_bound(self, n: int) -> float:
        """Bound on E||Q(v) - v||^2 / ||v||^2 over all v of n components, for this configuration.

        The scale is at most twice the maximum and so at most twice the l2 norm: the l2 bound holds
        with twice the step of the first level, which is what 4 n components would have.
        """
        bucket = 4 * min(n, self.bucket_size)
        levels = self.level_grid.levels
        return variance_bound(levels, bucket) + rounding_resolution_bound(
            levels, bucket, PROBABILITY_RESOLUTION
        )
