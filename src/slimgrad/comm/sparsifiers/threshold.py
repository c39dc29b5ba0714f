"""Threshold: every component that is large enough."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import ClassVar, Literal, final, get_args

import numpy as np
import torch

from slimgrad.comm.sparsifiers.base import Kept, Sparsifier
from slimgrad.core.errors import ConfigError
from slimgrad.core.registry import unknown_name_message

Unit = Literal["rms", "max", "one"]


@final
@dataclass(frozen=True)
class Threshold(Sparsifier):
    """Keep the components with |v_i| >= threshold unit(v) as they are.

    The unit is the root mean square of the vector, its largest magnitude, or one. How many
    components are kept depends on the vector; none may be.

    Guarantee: biased. ||C(v) - v||^2 is at most min(1, t^2) ||v||^2 for the unit "rms",
    (n - 1) t^2 / (1 + (n - 1) t^2) ||v||^2 for "max" (t <= 1), and ||v||^2 for "one".

    Args:
        threshold: t > 0, in the unit.
        unit: "rms", "max" or "one".

    Raises:
        ConfigError: a value out of range.

    >>> Threshold(0.5, unit="max").select(torch.tensor([1.0, -4.0, 2.0, 0.0]), key=0).values
    tensor([-4.,  2.])

    References:
        Strom (2015), "Scalable distributed DNN training using commodity GPU cloud computing",
        section 4, for the fixed threshold. Bounds: derived for this class.
    """

    name: ClassVar[str] = "threshold"
    strength: ClassVar[str] = "threshold"

    threshold: float = 2.0
    unit: Unit = "rms"

    def __post_init__(self) -> None:
        number = isinstance(self.threshold, int | float) and not isinstance(self.threshold, bool)
        if not number or not 0 < self.threshold < math.inf:
            raise ConfigError(f"Threshold needs a threshold > 0, got {self.threshold!r}")
        if self.unit not in get_args(Unit):
            raise ConfigError(unknown_name_message("unit", self.unit, get_args(Unit)))
        if self.unit == "max" and self.threshold > 1:
            raise ConfigError(
                f"no component exceeds {self.threshold!r} times the largest; "
                "give a threshold of at most 1 with unit='max'"
            )

    @property
    def unbiased(self) -> bool:
        """False: what is below the threshold is lost."""
        return False

    def select(self, vector: torch.Tensor, key: int) -> Kept:
        """All that reaches the threshold, and all that is not finite; ``key`` is not used."""
        content = vector.numpy()
        magnitude = np.abs(content)
        # numpy compares in float64 only with a float64 of its own.
        cut = np.float64(self.threshold * self._unit_of(magnitude))
        # Written so that a NaN on either side keeps a NaN.
        places = np.flatnonzero(~(magnitude < cut)) if cut > 0 else np.flatnonzero(magnitude)
        return Kept(len(content), torch.from_numpy(places), torch.from_numpy(content[places]))

    def _unit_of(self, magnitude: np.ndarray) -> float:
        if self.unit == "one":
            return 1.0
        largest = float(magnitude.max(initial=0.0))
        # Beside an infinity or a NaN only what is not finite counts.
        if not math.isfinite(largest):
            return math.inf
        if self.unit == "max":
            return largest
        squares = float(np.square(magnitude, dtype=np.float64).sum())
        return math.sqrt(squares / max(len(magnitude), 1))

    def contraction_bound(self, n: int) -> float:
        """The bound of the class for its unit."""
        square = self.threshold**2
        if self.unit == "rms":
            return min(1.0, square)
        if self.unit == "max" and n:
            return (n - 1) * square / (1 + (n - 1) * square)
        return 1.0 if n else 0.0
