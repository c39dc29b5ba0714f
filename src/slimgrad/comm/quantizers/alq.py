"""ALQ: every level is chosen for the measured distribution."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar, final

from slimgrad.comm.quantizers.adaptive import AdaptiveQuantizer
from slimgrad.comm.quantizers.level import magnitudes
from slimgrad.theory import MagnitudeDensity, optimal_levels


@final
@dataclass(frozen=True)
class ALQ(AdaptiveQuantizer):
    """Rounding to the levels of least expected variance, by coordinate descent.

    Between its neighbours a and c a level l satisfies F(l) = F(c) - integral of (r - a) / (c - a)
    dF over (a, c], with F the norm-weighted distribution of r = |v_i| / norm(v). Counted per
    tensor and refreshed on a schedule, as ``AdaptiveQuantizer`` says.

    Guarantee: unbiased; the expected variance of fresh levels is never above that of uniform and
    of exponential levels for the counted distribution.

    Args:
        bits: width of a symbol with its sign, 3 to 8.
        bucket_size: components that share a norm, >= 1.
        norm: "l2" or "linf", of the bucket.
        refresh_at: steps at which levels are chosen anew, each >= 0.
        refresh_every: and at every multiple of this, >= 1.

    Raises:
        ConfigError: a value out of range.

    >>> ALQ(bits=3).level_grid.levels
    (0.0, 0.25, 0.5, 1.0)

    References:
        Faghri, Tabrizian, Markov, Alistarh, Roy, Ramezani-Kebrya (2020), section 3 (ALQ).
    """

    name: ClassVar[str] = "alq"

    def best_levels(self, density: MagnitudeDensity) -> tuple[float, ...]:
        """The levels for magnitudes of this distribution."""
        return optimal_levels(density, magnitudes(self.bits) - 1)
