"""The handle on an approximated model."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal, final

import torch

from slimgrad.approx.choice import Candidate
from slimgrad.approx.estimators.base import GradientEstimator
from slimgrad.approx.estimators.exact import Exact
from slimgrad.approx.layers import PLAN, change_back, is_changed
from slimgrad.approx.plan import LayerPlan, StepClock, is_seed
from slimgrad.approx.report import ApproximationReport, LayerReport
from slimgrad.approx.schedules import Schedule
from slimgrad.core.errors import CheckpointError, ConfigError

_STATE_VERSION = 1
PERIOD_CAP = 4096  # steps looked ahead to tell which layers a schedule ever selects


@dataclass(frozen=True)
class PlannedLayer:
    """A layer of the model and what slimgrad keeps on it (None: left alone)."""

    candidate: Candidate
    plan: LayerPlan | None


@final
class ApproximationHandle:
    """Steps, reports and undoes one :func:`slimgrad.approximate` call.

    Attributes:
        estimator: the estimator given.
        schedule: where and when it is used.
    """

    def __init__(
        self,
        estimator: GradientEstimator,
        clock: StepClock,
        layers: list[PlannedLayer],
        optimizer: torch.optim.Optimizer | None,
    ) -> None:
        self.estimator = estimator
        self.schedule: Schedule = clock.schedule
        self._clock = clock
        self._layers = layers
        self._restored = False
        self._hook = None
        if optimizer is not None:
            self._hook = optimizer.register_step_post_hook(lambda *_: self._advance())

    @property
    def current_step(self) -> int:
        """Optimizer steps done, as the schedule counts them."""
        return self._clock.step

    def step(self) -> None:
        """Advance the schedule and the random streams: call it after each optimizer step.

        Raises:
            ConfigError: the handle was given the optimizer and steps with it, or was restored.
        """
        self._check_live("step()")
        if self._hook is not None:
            raise ConfigError(
                "this handle steps with its optimizer; call step() only on a handle made without "
                "optimizer="
            )
        self._advance()

    def restore(self) -> None:
        """Give every layer its stock class back; later calls do nothing.

        Raises:
            ConfigError: the class of a layer was changed again since; nothing is restored then.
        """
        if self._restored:
            return
        converted = [layer for layer in self._layers if layer.plan is not None]
        for layer in converted:
            module = layer.candidate.module
            if not is_changed(module) or module.__dict__[PLAN] is not layer.plan:
                raise ConfigError(
                    f"layer {layer.candidate.name!r} cannot be restored: its class was changed "
                    f"to {type(module).__name__} after approximate(); undo that change first"
                )
        for layer in converted:
            change_back(layer.candidate.module)
        if self._hook is not None:
            self._hook.remove()
        self._restored = True

    def state_dict(self) -> dict[str, Any]:
        """Step, seed, settings and running counts, loadable with ``weights_only=True``.

        Keyed by layer name and free of ranks, so it fits any number of processes. Save it between
        steps: calls made within an unfinished step are not part of it.
        """
        counts = {
            layer.candidate.name: list(layer.plan.totals)
            for layer in self._layers
            if layer.plan is not None
        }
        return {
            "version": _STATE_VERSION,
            "step": self._clock.step,
            "seed": self._clock.seed,
            "estimator": repr(self.estimator),
            "schedule": self.schedule.state_dict(),
            "macs": counts,
        }

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """Continue where ``state`` was saved, with its step, seed and counts.

        Raises:
            CheckpointError: not such a state, or one of another estimator, schedule or model.
            ConfigError: the handle was restored.
        """
        self._check_live("load_state_dict()")
        plans = {layer.candidate.name: layer.plan for layer in self._layers if layer.plan}
        _check_state(state, repr(self.estimator), set(plans))
        self.schedule.load_state_dict(state["schedule"])
        for name, (exact, spent) in state["macs"].items():
            plans[name].restore_totals(exact, spent)
        self._clock.seed = state["seed"]
        self._clock.move_to(state["step"])

    def selected_layers(self) -> list[str]:
        """Names of the layers that the schedule selects in some step.

        For a schedule that never repeats, these are the layers it selects in its first steps.
        """
        steps = range(min(self.schedule.period or PERIOD_CAP, PERIOD_CAP))
        return [
            layer.candidate.name
            for layer in self._layers
            if layer.plan is not None and _is_selected(self.schedule, layer.plan, steps)
        ]

    def report(self) -> ApproximationReport:
        """Every convolution and linear layer: what is done with it, and its counts so far."""
        selected = set(self.selected_layers())
        totals = [layer.plan.totals if layer.plan else (0, 0) for layer in self._layers]
        whole = sum(exact for exact, _ in totals)
        rows = []
        for layer, (exact, spent) in zip(self._layers, totals, strict=True):
            status, reason = self._status(layer, selected)
            rows.append(
                LayerReport(
                    name=layer.candidate.name,
                    kind=layer.candidate.kind,
                    number=layer.plan.number if layer.plan else 0,
                    status=status,
                    reason=reason,
                    share=exact / whole if whole else 0.0,
                    exact_macs=exact,
                    spent_macs=spent,
                    counted=layer.plan is not None,
                )
            )
        return ApproximationReport(self._clock.step, tuple(rows))

    def _status(
        self, layer: PlannedLayer, selected: set[str]
    ) -> tuple[Literal["approximate", "exact"], str]:
        if layer.candidate.reason:
            return "exact", layer.candidate.reason
        weight = layer.candidate.module.weight
        if isinstance(weight, torch.Tensor) and not weight.requires_grad:
            return "exact", "its weight is frozen"
        if layer.candidate.name not in selected:
            return "exact", f"not selected by {self.schedule!r}"
        return "approximate", repr(self.estimator)

    def _advance(self) -> None:
        self._clock.move_to(self._clock.step + 1)

    def _check_live(self, call: str) -> None:
        if self._restored:
            raise ConfigError(f"{call} on a restored handle; call approximate() again")


def _is_selected(schedule: Schedule, plan: LayerPlan, steps: range) -> bool:
    scheduled = plan.layer
    if scheduled is None:
        return False
    return any(not isinstance(schedule.select(step, scheduled), Exact) for step in steps)


def _check_state(state: object, estimator: str, names: set[str]) -> None:
    fields = {"version", "step", "seed", "estimator", "schedule", "macs"}
    if not isinstance(state, dict) or not fields <= state.keys():
        raise CheckpointError(f"not the state of an approximation: needs {sorted(fields)}")
    if state["version"] != _STATE_VERSION:
        raise CheckpointError(
            f"approximation state of version {state['version']!r}; this release reads "
            f"{_STATE_VERSION}"
        )
    if state["estimator"] != estimator:
        raise CheckpointError(
            f"the saved estimator is {state['estimator']} but this one is {estimator}"
        )
    # Step and seed name random streams alike: both are integers of 63 bits.
    for field in ("step", "seed"):
        if not is_seed(state[field]):
            raise CheckpointError(
                f"the saved {field} must be an integer from 0 to 2**63 - 1, got {state[field]!r}"
            )
    counts = state["macs"]
    if not isinstance(counts, dict) or not all(_is_pair(pair) for pair in counts.values()):
        raise CheckpointError(
            f"the saved macs must map layer names to two integers, got {counts!r}"
        )
    if differing := sorted(names ^ counts.keys()):
        raise CheckpointError(f"the saved layers differ from this model's: {', '.join(differing)}")


def _is_pair(value: object) -> bool:
    return isinstance(value, list | tuple) and [type(number) for number in value] == [int, int]
