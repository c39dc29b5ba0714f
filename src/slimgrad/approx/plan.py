"""What each converted layer knows: its choice for this step, its random stream, its work so far."""

from __future__ import annotations

import functools
import warnings
import weakref
from dataclasses import dataclass, field
from typing import Any

import torch
import torch.distributed as dist
from torch.utils.checkpoint import checkpoint

from slimgrad.approx.estimators.base import GradientEstimator
from slimgrad.approx.estimators.exact import Exact
from slimgrad.approx.schedules import EXACT, Schedule, ScheduledLayer
from slimgrad.core.errors import ConfigError, FallbackWarning, NoEffectWarning
from slimgrad.core.rng import stream_key


def _distributed() -> bool:
    return dist.is_available() and dist.is_initialized()


def current_rank() -> int:
    """Rank of this process, 0 outside torch.distributed."""
    return dist.get_rank() if _distributed() else 0


def is_seed(value: object) -> bool:
    """Whether ``value`` can name a random stream: an integer from 0 to 2**63 - 1."""
    return isinstance(value, int) and not isinstance(value, bool) and 0 <= value < 2**63


# Private, but what torch.utils.checkpoint itself goes by.
_BACKWARD_NUMBER = getattr(torch._C, "_current_graph_task_id", None)
_SAVING_HOOKS = getattr(
    getattr(torch._C, "_autograd", None), "_top_saved_tensors_default_hooks", None
)


def recomputing() -> bool:
    """Whether a non-reentrant checkpoint repeats a forward pass that was counted already.

    Such a pass runs inside a backward pass and under hooks of the checkpoint. The one of a
    reentrant checkpoint runs without them, and is the first with gradients enabled. Only counts
    depend on the answer; False where torch does not tell.
    """
    if _BACKWARD_NUMBER is None or _SAVING_HOOKS is None or _BACKWARD_NUMBER() == -1:
        return False
    hooks = _SAVING_HOOKS(True)
    return hooks is not None and getattr(hooks[0], "__module__", "") == checkpoint.__module__


@functools.cache
def warn_if_recomputing_is_unknown() -> None:
    """Say once that this torch does not tell what :func:`recomputing` asks."""
    if _BACKWARD_NUMBER is None or _SAVING_HOOKS is None:
        warnings.warn(
            f"torch {torch.__version__} does not tell forward passes that a checkpoint repeats: "
            "their multiply-adds are counted twice in reports; gradients are not affected",
            FallbackWarning,
            stacklevel=3,
        )


# More passes than one optimizer step accumulates over.
UNSTEPPED_PASSES = 256


@dataclass(eq=False)
class StepClock:
    """The step all layers of one :func:`slimgrad.approximate` call agree on.

    Deep copies of a model follow the clock of the original; a pickled model carries its own.

    Attributes:
        schedule: chooses the estimators.
        seed: of the random streams.
        step: optimizer steps done.
        warned: whether a step that never moves was said.
    """

    schedule: Schedule
    seed: int
    step: int = 0
    warned: bool = False
    plans: weakref.WeakSet[LayerPlan] = field(default_factory=weakref.WeakSet)

    def move_to(self, step: int) -> None:
        """Set the step and let every layer choose its estimator for it."""
        self.step = step
        for plan in sorted(self.plans, key=lambda plan: plan.number):
            plan.choose()

    def warn_unstepped(self) -> None:
        """Say once that the schedule waits for steps that nobody reports."""
        if self.schedule.period == 1 or self.warned:
            return
        self.warned = True
        warnings.warn(
            f"step {self.step} lasts for {UNSTEPPED_PASSES} forward passes now, and "
            f"{self.schedule!r} changes with the step: give approximate() the optimizer that "
            "steps, or call handle.step() after each optimizer step",
            NoEffectWarning,
            stacklevel=5,
        )

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
        exact: what computes an exact gradient; None for the stock operation.
        estimator: choice for this step; None runs the stock operation.
        calls: random streams drawn from since the last step.
        passes: forward passes counted since the last step.
        exact_macs: multiply-adds of exact weight gradients so far.
        spent_macs: multiply-adds spent on weight gradients so far.
        traced_macs: the same two, counted by compiled code.
        owner: the handle; None in a copy of the layer.
    """

    name: str
    clock: StepClock
    layer: ScheduledLayer | None = None
    estimator: GradientEstimator | None = None
    exact: GradientEstimator | None = None
    calls: int = 0
    passes: int = 0
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
        """Take the schedule's choice for this step."""
        self.calls = self.passes = 0
        choice = self.choice(self.clock.step)
        if isinstance(choice, Exact):
            self.estimator = self.exact
        elif choice != self.estimator:
            # An equal estimator keeps its identity, so compiled code is not compiled again.
            self.estimator = choice

    def choice(self, step: int) -> GradientEstimator:
        """The schedule's choice for ``step``; exact for a layer that is only counted.

        Raises:
            ConfigError: the schedule returned something else, or Skip beside a process group.
        """
        if self.layer is None:
            return EXACT
        choice = self.clock.schedule.select(step, self.layer)
        if not isinstance(choice, GradientEstimator):
            raise ConfigError(
                f"schedule {self.clock.schedule!r} returned {choice!r} for layer {self.name!r}; "
                "select() must return a GradientEstimator"
            )
        # Even of a single process: DDP then turns the missing gradient into zeros.
        if not choice.needs_gradient and _distributed():
            raise ConfigError(
                f"layer {self.name!r}: {choice!r} leaves no gradient to reduce over the "
                "process group of this run; use Zero() here"
            )
        return choice

    def next_key(self) -> int:
        """Key of the random stream of this call: (seed, step, layer and call, rank)."""
        name = self.name if self.calls == 0 else f"{self.name}#{self.calls}"
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
            self.passes += 1
            if self.passes == UNSTEPPED_PASSES and self.layer is not None:
                self.clock.warn_unstepped()

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
        copied = LayerPlan(self.name, self.clock, self.layer, self.estimator, self.exact)
        memo[id(self)] = copied
        return copied

    def __getstate__(self) -> dict[str, Any]:
        return {**self.__dict__, "owner": None}

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__dict__.update(state)
        self.clock.plans.add(self)


def _counter() -> torch.Tensor:
    return torch.zeros((), dtype=torch.int64, device="cpu")
