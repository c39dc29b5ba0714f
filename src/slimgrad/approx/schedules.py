"""Which layers use an approximate weight gradient in which steps."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import asdict, dataclass, is_dataclass
from typing import Any, ClassVar, final

from slimgrad.approx.estimators.base import GradientEstimator, LayerGeometry
from slimgrad.approx.estimators.exact import Exact
from slimgrad.core.errors import CheckpointError, ConfigError
from slimgrad.core.registry import Registry

EXACT = Exact()


@dataclass(frozen=True)
class ScheduledLayer:
    """A layer as a schedule sees it.

    Attributes:
        name: dotted name in the model.
        number: place among the layers chosen for approximation, in module order, from 1.
        total: how many layers were chosen.
        geometry: kind, weight shape, stride and so on.
        estimator: the estimator given to :func:`slimgrad.approximate`.
    """

    name: str
    number: int
    total: int
    geometry: LayerGeometry
    estimator: GradientEstimator


class Schedule(ABC):
    """Chooses the estimator of every layer in every step.

    Steps count from 0; the batch of step t is the (t + 1)-th. Layers count from 1 among the layers
    chosen for approximation.

    Attributes:
        name: registry name.
    """

    name: ClassVar[str]

    @property
    def period(self) -> int | None:
        """Steps after which the choices repeat; None when they do not, or nobody knows."""
        return None

    @abstractmethod
    def select(self, step: int, layer: ScheduledLayer) -> GradientEstimator:
        """The estimator of ``layer`` in ``step``: a pure function of the two and of the state.

        Args:
            step: optimizer steps done so far, >= 0.
            layer: the layer; ``layer.estimator`` is the one the user gave.
        """

    def state_dict(self) -> dict[str, Any]:
        """Name and settings, as plain values that load with ``weights_only=True``."""
        settings = asdict(self) if is_dataclass(self) else {}
        return {"name": self.name, "settings": settings}

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """Check that ``state`` was saved by an equal schedule.

        Raises:
            CheckpointError: another schedule or other settings.
        """
        own = self.state_dict()
        if state != own:
            raise CheckpointError(
                f"the saved schedule is {state!r} but this one is {own!r}; "
                "build the schedule with the saved settings, or start anew without the state"
            )


def _check_count(owner: str, name: str, value: object) -> None:
    if not isinstance(value, int) or isinstance(value, bool) or value < 1:
        raise ConfigError(f"{owner}: {name} must be an integer of at least 1, got {value!r}")


@final
@dataclass(frozen=True)
class Always(Schedule):
    """Every chosen layer in every step.

    >>> Always().state_dict()
    {'name': 'always', 'settings': {}}
    """

    name: ClassVar[str] = "always"

    @property
    def period(self) -> int:
        """1."""
        return 1

    def select(self, step: int, layer: ScheduledLayer) -> GradientEstimator:
        """The user's estimator."""
        return layer.estimator


@final
@dataclass(frozen=True)
class EveryNthLayer(Schedule):
    """Layers start, start + n, start + 2 n, ... in every step; schedule 1 of the paper with n = 4.

    Args:
        n: distance between approximated layers, >= 1.
        start: number of the first one, from 1. The default leaves the first layer exact, which the
            paper found hard to approximate.

    References:
        Z. Wang, S. H. Nelaturu, S. Amarasinghe: Accelerated CNN Training Through Gradient
        Approximation, EMC2 2019 (schedule 1).
    """

    n: int
    start: int = 2

    name: ClassVar[str] = "every_nth_layer"

    def __post_init__(self) -> None:
        _check_count("EveryNthLayer", "n", self.n)
        _check_count("EveryNthLayer", "start", self.start)

    @property
    def period(self) -> int:
        """1."""
        return 1

    def select(self, step: int, layer: ScheduledLayer) -> GradientEstimator:
        """The user's estimator in layers start, start + n, ..., exact elsewhere."""
        after = layer.number - self.start
        return layer.estimator if after >= 0 and after % self.n == 0 else EXACT


@final
@dataclass(frozen=True)
class Alternate(Schedule):
    """Every ``layers``-th layer in every ``steps``-th batch; schedule 2 of the paper with (2, 2).

    Layers whose number, and batches whose number (step + 1), are multiples: with (2, 2) the layers
    2, 4, 6, ... in batches 2, 4, 6, ...

    Args:
        layers: >= 1.
        steps: >= 1.

    References:
        Z. Wang, S. H. Nelaturu, S. Amarasinghe: Accelerated CNN Training Through Gradient
        Approximation, EMC2 2019 (schedule 2).
    """

    layers: int = 2
    steps: int = 2

    name: ClassVar[str] = "alternate"

    def __post_init__(self) -> None:
        _check_count("Alternate", "layers", self.layers)
        _check_count("Alternate", "steps", self.steps)

    @property
    def period(self) -> int:
        """``steps``."""
        return self.steps

    def select(self, step: int, layer: ScheduledLayer) -> GradientEstimator:
        """The user's estimator where layer and batch number are multiples, exact elsewhere."""
        chosen = layer.number % self.layers == 0 and (step + 1) % self.steps == 0
        return layer.estimator if chosen else EXACT


@final
@dataclass(frozen=True)
class EveryNthStep(Schedule):
    """Every chosen layer in every n-th batch: n, 2 n, ...; schedule 3 of the paper with n = 4.

    Args:
        n: >= 1.

    References:
        Z. Wang, S. H. Nelaturu, S. Amarasinghe: Accelerated CNN Training Through Gradient
        Approximation, EMC2 2019 (schedule 3).
    """

    n: int

    name: ClassVar[str] = "every_nth_step"

    def __post_init__(self) -> None:
        _check_count("EveryNthStep", "n", self.n)

    @property
    def period(self) -> int:
        """``n``."""
        return self.n

    def select(self, step: int, layer: ScheduledLayer) -> GradientEstimator:
        """The user's estimator in steps n - 1, 2 n - 1, ..., exact elsewhere."""
        return layer.estimator if (step + 1) % self.n == 0 else EXACT


SCHEDULES = Registry[type[Schedule]]("schedule")
for _part in (Always, EveryNthLayer, Alternate, EveryNthStep):
    SCHEDULES.add(_part.name)(_part)
