"""``approximate()``: turn a model's layers into approximating ones, and back."""

from __future__ import annotations

import warnings
import weakref
from collections import Counter

import torch
from torch import nn

from slimgrad.approx.choice import Candidate, Where, bare_model, candidates
from slimgrad.approx.estimators.base import GradientEstimator
from slimgrad.approx.estimators.exact import Exact
from slimgrad.approx.estimators.exactpositions import ExactPositions
from slimgrad.approx.handle import PERIOD_CAP, ApproximationHandle, PlannedLayer
from slimgrad.approx.layers import TUNED, change_back, change_class, is_changed, layer_geometry
from slimgrad.approx.plan import LayerPlan, StepClock, is_seed, warn_if_recomputing_is_unknown
from slimgrad.approx.schedules import Always, Schedule, ScheduledLayer
from slimgrad.core.errors import ConfigError, NoEffectWarning


def approximate(
    model: nn.Module,
    estimator: GradientEstimator,
    *,
    schedule: Schedule | None = None,
    optimizer: torch.optim.Optimizer | None = None,
    where: Where | None = None,
    seed: int = 0,
) -> ApproximationHandle:
    """Estimate weight gradients of ``model`` with ``estimator`` where ``schedule`` says so.

    The classes of the chosen layers change; the modules, their parameters, hooks and state_dict
    keys stay, so an optimizer made before or after keeps working. Outputs, input gradients and
    bias gradients are exact. Evaluation mode, ``no_grad``, frozen weights and export run the stock
    operation, and so does every layer in a step for which the schedule selects
    :class:`~slimgrad.Exact`. Other convolution and linear layers stay exact and are counted; the
    report names each with the reason.

    A deep copy of the model goes on estimating and follows the step of the original; it is not
    part of the handle. Call ``approximate`` on the copy to give it a handle of its own.

    Args:
        model: the network, bare or wrapped for data parallelism or compiled.
        estimator: used where the schedule selects it.
        schedule: default :class:`~slimgrad.approx.Always`: every chosen layer in every step.
        optimizer: when given, the handle's step advances after each of its steps. A step that
            gradient scaling skips does not count. Otherwise call ``handle.step()`` yourself.
        where: names of the layers to choose, or a function of (name, module). Default: all
            two-dimensional convolutions, or the linear layers of a model without any. Layers are
            numbered among those chosen and convertible, in module order.
        seed: of the random streams, which are keyed by (seed, step, layer, rank).

    Returns:
        The handle: ``step()``, ``restore()``, ``report()``, ``state_dict()``.

    Raises:
        ConfigError: an argument has the wrong form, a name in ``where`` does not exist or cannot
            be converted, the model is approximated already, or a choice of the schedule is not
            possible in this run.

    Warns:
        NoEffectWarning: no layer was converted, or the schedule selects none of them.
        FallbackWarning: this torch does not tell what checkpointing repeats.

    >>> import slimgrad
    >>> model = nn.Sequential(nn.Conv2d(1, 2, 3), nn.ReLU(), nn.Conv2d(2, 2, 3))
    >>> handle = slimgrad.approximate(model, slimgrad.Zero(), where=["2"])
    >>> model(torch.ones(1, 1, 5, 5)).sum().backward()
    >>> float(model[2].weight.grad.abs().max())
    0.0
    >>> handle.report().exact_macs, handle.report().spent_macs
    (198, 162)
    >>> handle.restore()
    >>> type(model[2])
    <class 'torch.nn.modules.conv.Conv2d'>
    """
    schedule = Always() if schedule is None else schedule
    _check_arguments(model, estimator, schedule, optimizer, seed)
    model = bare_model(model)
    found = candidates(model, where)
    clock = StepClock(schedule, seed)
    planned = _plan(found, estimator, clock)
    _check_choices(planned, schedule)
    clock.move_to(0)
    _check_parameters(model, optimizer)
    warn_if_recomputing_is_unknown()
    handle = ApproximationHandle(estimator, clock, _convert(planned), optimizer)
    for layer in planned:
        if layer.plan is not None:
            layer.plan.owner = weakref.ref(handle)
    _warn_without_effect(found, handle)
    return handle


def _check_arguments(
    model: object, estimator: object, schedule: object, optimizer: object, seed: object
) -> None:
    if not isinstance(model, nn.Module):
        raise ConfigError(f"model must be a torch.nn.Module, got {model!r}")
    if not isinstance(estimator, GradientEstimator):
        raise ConfigError(
            f"estimator must be an object such as slimgrad.TopOne(), got {estimator!r}"
        )
    if not isinstance(schedule, Schedule):
        raise ConfigError(
            f"schedule must be an object such as slimgrad.EveryNthLayer(4), got {schedule!r}"
        )
    if optimizer is not None and not hasattr(optimizer, "register_step_post_hook"):
        raise ConfigError(
            f"optimizer must be a torch.optim.Optimizer, got {optimizer!r}; "
            "leave it out and call handle.step() after each step instead"
        )
    if not is_seed(seed):
        raise ConfigError(f"seed must be an integer from 0 to 2**63 - 1, got {seed!r}")


def _check_parameters(model: nn.Module, optimizer: torch.optim.Optimizer | None) -> None:
    if optimizer is None:
        return
    stepped = {id(p) for group in optimizer.param_groups for p in group["params"]}
    if stepped and not any(id(p) in stepped for p in model.parameters()):
        raise ConfigError(
            "the optimizer holds no parameter of this model, so its steps are not the model's; "
            "pass the optimizer that trains the model, or leave optimizer= out and call "
            "handle.step() after each step"
        )


def _plan(
    found: list[Candidate], estimator: GradientEstimator, clock: StepClock
) -> list[PlannedLayer]:
    total = sum(not candidate.reason for candidate in found)
    planned, number = [], 0
    for candidate in found:
        plan = None
        if not candidate.reason:
            number += 1
            assert isinstance(candidate.module, nn.Conv2d | nn.Linear)
            geometry = layer_geometry(candidate.module)
            layer = ScheduledLayer(candidate.name, number, total, geometry, estimator)
            exact = ExactPositions() if candidate.module.__dict__.get(TUNED) else None
            plan = LayerPlan(candidate.name, clock, layer, exact=exact)
        elif candidate.countable:
            plan = LayerPlan(candidate.name, clock)
        planned.append(PlannedLayer(candidate, plan))
    return planned


def _check_choices(planned: list[PlannedLayer], schedule: Schedule) -> None:
    """Ask for every choice now, so that a wrong one does not end the training half-way."""
    for step in range(min(schedule.period or 1, PERIOD_CAP)):
        for layer in planned:
            if layer.plan is not None:
                layer.plan.choice(step)


def _convert(planned: list[PlannedLayer]) -> list[PlannedLayer]:
    for layer in planned:
        module = layer.candidate.module
        if is_changed(module):  # a copy of an approximated layer, owned by nobody
            change_back(module)
        if layer.plan is not None:
            change_class(module, layer.plan)
    return planned


def _warn_without_effect(found: list[Candidate], handle: ApproximationHandle) -> None:
    if all(candidate.reason for candidate in found):
        reasons = Counter(f"{c.kind}: {c.reason}" for c in found)
        why = "; ".join(f"{count} {reason}" for reason, count in reasons.items())
        text = f"approximate() converted no layer ({why or 'the model has no such layers'})"
    elif not isinstance(handle.estimator, Exact) and not handle.selected_layers():
        total = sum(not candidate.reason for candidate in found)
        text = f"{handle.schedule!r} selects none of the {total} chosen layers in any step"
    else:
        return
    warnings.warn(text, NoEffectWarning, stacklevel=3)
