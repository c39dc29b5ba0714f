"""What each converted layer knows: its choice for this step, its random stream, its work so far."""

from __future__ import annotations

import weakref
from dataclasses import dataclass, field
from typing import Any

import torch
import torch.distributed as dist
from torch._C._autograd import _top_saved_tensors_default_hooks

from slimgrad.approx.estimators.base import GradientEstimator
from slimgrad.approx.estimators.exact import Exact
from slimgrad.approx.schedules import Schedule, ScheduledLayer
from slimgrad.core.errors import ConfigError
from slimgrad.core.rng import stream_key


def _distributed() -> bool:
    return dist.is_available() and dist.is_initialized()


def current_rank() -> int:
    """Rank of this process, 0 outside torch.distributed."""
    return dist.get_rank() if _distributed() else 0


def recomputing() -> bool:
    """Whether this forward pass repeats one already counted, for a non-reentrant checkpoint.

    Such a pass runs inside a backward pass and under saved-tensor hooks. The one of a reentrant
    checkpoint runs without them, and is the first with gradients enabled.
    """
    if torch._C._current_graph_task_id() == -1:
        return False
    return _top_saved_tensors_default_hooks(True) is not None


@dataclass(eq=False)
class StepClock:
    """The step all layers of one :func:`slimgrad.approximate` call agree on.

    Deep copies of a model follow the clock of the original; a pickled model carries its own.

    Attributes:
        schedule: chooses the estimators.
        seed: of the random streams.
        step: optimizer steps done.
    """

    schedule: Schedule
    seed: int
    step: int = 0
    plans: weakref.WeakSet[LayerPlan] = field(default_factory=weakref.WeakSet)

    def move_to(self, step: int) -> None:
        """Set the step and let every layer choose its estimator for it."""
        self.step = step
        for plan in sorted(self.plans, key=lambda plan: plan.number):
            plan.choose()

    def __deepcopy__(self, memo: dict[int, Any]) -> StepClock:
        return self

    def __getstate__(self) -> dict[str, Any]:
        return {**self.__dict__, "plans": None}

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__dict__.update(state)
        self.plans = weakref.WeakSet()


@dataclass(eq=False)
class LayerPlan:
    """The state slimgrad keeps on one layer.

    Attributes:
        name: dotted name of the layer.
        clock: the step.
        layer: the layer as its schedule sees it; None for a layer that is only counted.
        estimator: choice for this step; None runs the stock operation.
        calls: approximate forward passes since the last step.
        exact_macs: multiply-adds of exact weight gradients so far.
        spent_macs: multiply-adds spent on weight gradients so far.
        traced_macs: the same two, counted by compiled code.
        owner: the handle; None in a copy of the layer.
    """

    name: str
    clock: StepClock
    layer: ScheduledLayer | None = None
    estimator: GradientEstimator | None = None
    calls: int = 0
    exact_macs: int = 0
    spent_macs: int = 0
    traced_macs: tuple[torch.Tensor, torch.Tensor] = field(
        default_factory=lambda: (_counter(), _counter())
    )
    owner: weakref.ref[Any] | None = None

    def __post_init__(self) -> None:
        self.clock.plans.add(self)

    @property
    def number(self) -> int:
        """Place among the layers chosen for approximation, from 1; 0 for the others."""
        return self.layer.number if self.layer is not None else 0

    @property
    def owner_alive(self) -> bool:
        """Whether a handle can still restore the layer."""
        return self.owner is not None and self.owner() is not None

    def choose(self) -> None:
        """Ask the schedule for this step's estimator.

        Raises:
            ConfigError: the schedule returned something else, or Skip in a run of many processes.
        """
        self.calls = 0
        if self.layer is None:
            return
        choice = self.clock.schedule.select(self.clock.step, self.layer)
        if not isinstance(choice, GradientEstimator):
            raise ConfigError(
                f"schedule {self.clock.schedule!r} returned {choice!r} for layer {self.name!r}; "
                "select() must return a GradientEstimator"
            )
        if not choice.needs_gradient and _distributed() and dist.get_world_size() > 1:
            raise ConfigError(
                f"layer {self.name!r}: {choice!r} leaves no gradient to reduce over the "
                f"{dist.get_world_size()} processes of this run; use Zero() here"
            )
        if isinstance(choice, Exact):
            self.estimator = None
        elif choice != self.estimator:
            # An equal estimator keeps its identity, so compiled code is not compiled again.
            self.estimator = choice

    def next_key(self) -> int:
        """Key of the random stream of this call: (seed, step, layer and call, rank)."""
        name = self.name if self.calls == 0 else f"{self.name}#{self.calls}"
        if not recomputing():
            self.calls += 1
        return stream_key(self.clock.seed, self.clock.step, name, current_rank())

    def count(self, exact: int, spent: int) -> None:
        """Add the multiply-adds of one weight gradient."""
        if torch.compiler.is_compiling():
            # Compiled code would guard on the value of a Python integer and compile every step.
            self.traced_macs[0].add_(exact)
            self.traced_macs[1].add_(spent)
        elif not recomputing():
            self.exact_macs += exact
            self.spent_macs += spent

    @property
    def totals(self) -> tuple[int, int]:
        """(exact, spent) multiply-adds so far."""
        exact, spent = self.traced_macs
        return self.exact_macs + int(exact), self.spent_macs + int(spent)

    def restore_totals(self, exact: int, spent: int) -> None:
        """Set the running counts."""
        self.exact_macs, self.spent_macs = exact, spent
        for counter in self.traced_macs:
            counter.zero_()

    def __deepcopy__(self, memo: dict[int, Any]) -> LayerPlan:
        copied = LayerPlan(self.name, self.clock, self.layer, self.estimator)
        memo[id(self)] = copied
        return copied

    def __getstate__(self) -> dict[str, Any]:
        return {**self.__dict__, "owner": None}

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__dict__.update(state)
        self.clock.plans.add(self)


def _counter() -> torch.Tensor:
    return torch.zeros((), dtype=torch.int64, device="cpu")
