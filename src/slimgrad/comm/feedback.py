"""What compression left out, sent later: rules without state. The state is in feedback_memory."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import ClassVar, TypeAlias, final

import numpy as np

from slimgrad.core.errors import ConfigError
from slimgrad.core.registry import Registry

Memory: TypeAlias = dict[str, np.ndarray]
_WARM_UP_SHARE = 0.25


class Feedback(ABC):
    """Adds what earlier steps left out to a gradient before it is compressed.

    Attributes:
        name: registry name.
        parts: names of the vectors that are remembered for each parameter.
        warm_up: first steps in which a sparsifier keeps more than its share.
    """

    name: ClassVar[str]
    parts: ClassVar[tuple[str, ...]]
    warm_up: int = 0

    @abstractmethod
    def before(self, gradient: np.ndarray, memory: Memory, world_size: int, out: Memory) -> None:
        """Write the memory with ``gradient`` taken in to ``out``.

        Its last part is what is to be compressed. Arrays are given because making new ones would
        take longer than the arithmetic.
        """

    @abstractmethod
    def after(self, memory: Memory, left: np.ndarray) -> None:
        """Change all but the last part of ``memory``, of which ``left`` was not sent."""

    def share_at(self, step: int, keep: float) -> float:
        """The share a sparsifier that keeps ``keep`` is to keep at ``step``."""
        return keep


@final
@dataclass(frozen=True)
class ErrorFeedback(Feedback):
    """Add the error of the last frame to the next gradient.

    p = g + decay e; send C(p); e = p - C(p). With decay 1 nothing is ever lost: the sum of all
    that was sent plus e is the sum of all gradients.

    Guarantee: if ||C(p) - p||^2 <= (1 - d) ||p||^2 and gradients are at most G long, then
    ||e||^2 <= 4 (1 - d) G^2 / d^2 at decay 1.

    Args:
        decay: share of the error that is kept, above 0 and at most 1.

    Raises:
        ConfigError: a decay out of range.

    References:
        Seide, Fu, Droppo, Li, Yu (2014), "1-bit stochastic gradient descent"; Karimireddy, Rebjock,
        Stich, Jaggi (2019), "Error feedback fixes SignSGD", lemma 3; the decay as in Wu, Huang,
        Huang, Zhang (2018), "Error compensated quantized SGD".
    """

    name: ClassVar[str] = "error"
    parts: ClassVar[tuple[str, ...]] = ("error",)

    decay: float = 1.0

    def __post_init__(self) -> None:
        if isinstance(self.decay, bool) or not isinstance(self.decay, int | float):
            raise ConfigError(f"decay must be a number, got {self.decay!r}")
        if not 0 < self.decay <= 1:
            raise ConfigError(f"decay must be above 0 and at most 1, got {self.decay!r}")

    def before(self, gradient: np.ndarray, memory: Memory, world_size: int, out: Memory) -> None:
        """The gradient plus the error that is left."""
        error = memory["error"]
        if self.decay != 1:
            error = np.multiply(error, np.float32(self.decay), out=out["error"])
        np.add(gradient, error, out=out["error"])

    def after(self, memory: Memory, left: np.ndarray) -> None:
        """Nothing: the error is all there is."""


@final
@dataclass(frozen=True)
class DGC(Feedback):
    """Deep gradient compression: momentum before compression, and none for what has been sent.

    u = momentum u + g; v = v + u; send C(v); then v = v - C(v), and u = 0 where C(v) is not zero.
    The momentum is the optimizer's: run plain SGD without one. ``clip`` bounds the norm of each
    tensor's gradient by clip / sqrt(world_size) before it is taken in. In the first ``warm_up``
    steps a sparsifier keeps more: 1/4 at first, falling geometrically to its own share.

    Args:
        momentum: from 0 to below 1.
        clip: largest norm of the gradient of a tensor, over all ranks together, > 0; or None.
        warm_up: steps, >= 0.

    Raises:
        ConfigError: a value out of range.

    >>> [round(DGC(warm_up=2).share_at(step, 0.01), 3) for step in range(3)]
    [0.25, 0.05, 0.01]

    References:
        Lin, Han, Mao, Wang, Dally (2018), "Deep gradient compression", section 3 and algorithm 4.
    """

    name: ClassVar[str] = "dgc"
    parts: ClassVar[tuple[str, ...]] = ("momentum", "velocity")

    momentum: float = 0.9
    clip: float | None = None
    warm_up: int = 0

    def __post_init__(self) -> None:
        if isinstance(self.momentum, bool) or not isinstance(self.momentum, int | float):
            raise ConfigError(f"momentum must be a number, got {self.momentum!r}")
        if not 0 <= self.momentum < 1:
            raise ConfigError(f"momentum must be from 0 to below 1, got {self.momentum!r}")
        if self.clip is not None and (
            not isinstance(self.clip, int | float) or not 0 < self.clip < math.inf
        ):
            raise ConfigError(f"clip must be a norm > 0 or None, got {self.clip!r}")
        whole = isinstance(self.warm_up, int) and not isinstance(self.warm_up, bool)
        if not whole or self.warm_up < 0:
            raise ConfigError(f"warm_up must be a number of steps >= 0, got {self.warm_up!r}")

    def before(self, gradient: np.ndarray, memory: Memory, world_size: int, out: Memory) -> None:
        """Momentum and velocity with the clipped gradient."""
        if self.clip is not None:
            norm = math.sqrt(float(np.square(gradient, dtype=np.float64).sum()))
            most = self.clip / math.sqrt(world_size)
            if norm > most:
                gradient = gradient * np.float32(most / norm)
        momentum, velocity = out["momentum"], out["velocity"]
        np.multiply(memory["momentum"], np.float32(self.momentum), out=momentum)
        np.add(momentum, gradient, out=momentum)
        np.add(memory["velocity"], momentum, out=velocity)

    def after(self, memory: Memory, left: np.ndarray) -> None:
        """No momentum where something has been sent."""
        memory["momentum"][left != memory["velocity"]] = 0

    def share_at(self, step: int, keep: float) -> float:
        """From 1/4 to ``keep``, geometrically over the warm-up."""
        if step >= self.warm_up or keep >= _WARM_UP_SHARE:
            return keep
        progress = step / self.warm_up
        return _WARM_UP_SHARE ** (1 - progress) * keep**progress


FEEDBACKS = Registry[type[Feedback]]("feedback")
for _feedback in (ErrorFeedback, DGC):
    FEEDBACKS.add(_feedback.name)(_feedback)
