"""Noise of a gradient that W ranks quantize and average."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from slimgrad.core.errors import ConfigError
from slimgrad.core.registry import unknown_name_message
from slimgrad.theory.rates.arguments import count, non_negative, positive

Noise = Literal["bounded", "relative"]


@dataclass(frozen=True)
class QuantizedGradients:
    """Stochastic gradients g of ``world_size`` ranks, each quantized without bias, then averaged.

    Each rank sends Q(g) with E||Q(g) - g||^2 <= eps ||g||^2, eps = ``relative_variance``. With
    grad f the true gradient, the mean of W messages has variance at most the smaller of

    * (1 + eps) B / W, where E||g||^2 <= B,
    * ((1 + eps) s^2 + eps V^2) / W, where E||g - grad f||^2 <= s^2 and ||grad f|| <= V.

    Guarantee: the second follows from E||Q(g) - grad f||^2 <= E||g - grad f||^2 + eps E||g||^2
    and E||g||^2 = ||grad f||^2 + E||g - grad f||^2.

    Args:
        relative_variance: eps, for example from ``slimgrad.theory.variance_bound``; 0 is exact.
        world_size: number of ranks W.
        second_moment: B, a bound on E||g||^2 of one rank; None if there is none.
        variance: s^2, a bound on E||g - grad f||^2 of one rank; None if there is none.
        gradient_norm: V, a bound on ||grad f||; None if there is none.
        bits_per_message: bits of one quantized gradient; None if unknown.

    Raises:
        ConfigError: a number out of range.

    >>> QuantizedGradients(0.5, world_size=2, second_moment=4.0).averaged_variance_bound
    3.0

    References:
        Ramezani-Kebrya et al. (2021), Theorems 6 and 8, for the first form.
    """

    relative_variance: float
    world_size: int = 1
    second_moment: float | None = None
    variance: float | None = None
    gradient_norm: float | None = None
    bits_per_message: float | None = None

    def __post_init__(self) -> None:
        non_negative("relative_variance", self.relative_variance)
        count("world_size", self.world_size)
        if self.second_moment is not None:
            positive("second_moment", self.second_moment)
        for name in ("variance", "gradient_norm", "bits_per_message"):
            value = getattr(self, name)
            if value is not None:
                non_negative(name, value)

    @property
    def message_variance_bound(self) -> float | None:
        """Bound on the variance of one message; None when too little is known."""
        eps, bounds = self.relative_variance, []
        if self.second_moment is not None:
            bounds.append((1 + eps) * self.second_moment)
        if self.variance is not None and self.gradient_norm is not None:
            bounds.append((1 + eps) * self.variance + eps * self.gradient_norm**2)
        return min(bounds, default=None)

    @property
    def averaged_variance_bound(self) -> float | None:
        """Bound on the variance of the mean over ranks; None when too little is known."""
        one = self.message_variance_bound
        return None if one is None else one / self.world_size


def checked_noise(noise: str) -> Noise:
    """``noise`` if it names a way to bound the noise.

    "bounded" bounds the variance of the gradient that is applied; "relative" bounds that of one
    rank's gradient before quantization, and lets the quantizer's part grow with ||grad f||^2.

    Raises:
        ConfigError: it is neither "bounded" nor "relative".

    >>> checked_noise("relative")
    'relative'
    """
    if noise == "bounded":
        return "bounded"
    if noise == "relative":
        return "relative"
    raise ConfigError(unknown_name_message("noise", noise, ("bounded", "relative")))


NO_VARIANCE = (
    "no bound on the variance: give second_moment (E||g||^2 <= B), or both variance "
    "(E||g - grad f||^2 <= s^2) and gradient_norm (||grad f|| <= V)"
)
NO_GRADIENT_NORM = "no bound on the gradient: give gradient_norm (||grad f|| <= V)"
NO_RANK_VARIANCE = "no bound on the variance of one rank: give variance (E||g - grad f||^2 <= s^2)"
