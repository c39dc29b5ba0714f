"""AMQ: exponential levels whose ratio is chosen for the measured distribution."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar, final

from slimgrad.comm.quantizers.adaptive import AdaptiveQuantizer
from slimgrad.comm.quantizers.level import magnitudes
from slimgrad.theory import MagnitudeDensity, expected_optimal_ratio, exponential_levels


@final
@dataclass(frozen=True)
class AMQ(AdaptiveQuantizer):
    """Rounding to 0, p**s, ..., p, 1 with the ratio p of least expected variance.

    One number adapts instead of every level. Counted per tensor and refreshed on a schedule, as
    ``AdaptiveQuantizer`` says. The ratio is found by scanning instead of by gradient descent, so
    no step size matters.

    Guarantee: unbiased; the expected variance of fresh levels is least among exponential ones for
    the counted distribution, to the fineness of the scan.

    Args:
        bits: width of a symbol with its sign, 3 to 8.
        bucket_size: components that share a norm, >= 1.
        norm: "l2" or "linf", of the bucket.
        refresh_at: steps at which levels are chosen anew, each >= 0.
        refresh_every: and at every multiple of this, >= 1.

    Raises:
        ConfigError: a value out of range.

    >>> AMQ(bits=3).level_grid.levels
    (0.0, 0.25, 0.5, 1.0)

    References:
        Faghri, Tabrizian, Markov, Alistarh, Roy, Ramezani-Kebrya (2020), section 3 (AMQ).
    """

    name: ClassVar[str] = "amq"

    def best_levels(self, density: MagnitudeDensity) -> tuple[float, ...]:
        """The levels for magnitudes of this distribution."""
        s = magnitudes(self.bits) - 1
        return exponential_levels(s, expected_optimal_ratio(density, s))
