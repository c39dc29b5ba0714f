"""Are estimated weight gradients right on average, and how noisy are they? Measured on a model."""

from __future__ import annotations

import copy
import math
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any, Literal

import torch
from torch import nn

from slimgrad.approx.choice import Where, bare_model, candidates
from slimgrad.approx.estimators.base import GradientEstimator
from slimgrad.core.errors import ConfigError
from slimgrad.core.rng import stream_key
from slimgrad.diagnose.layer_tape import LayerTape
from slimgrad.diagnose.moments import GROUPS, PairedMoments

Verdict = Literal["biased", "unbiased", "open"]


@dataclass(frozen=True)
class EstimatorProbe:
    """What one estimator did in one layer, over all batches.

    Attributes:
        layer: dotted name.
        estimator: its text, settings included.
        claims_unbiased: what the estimator says of itself.
        relative_bias: square root of the estimated squared mean error, over the root mean square
            norm of a batch's exact gradient; 0 where the estimate of the square is negative.
        relative_bias_low, relative_bias_high: ends of its 95 % interval.
        cosine: between estimated and exact gradient, mean over batches; NaN for zero estimates.
        norm_ratio: norm of the estimated gradient over that of the exact one, root mean square.
        added_variance: variance over the estimator's own draws, as a share of the mini-batch
            noise of the exact gradient; 0 for an estimator without draws.
        noise_multiplier: 1 + mean squared error over the mini-batch noise.
        verdict: "biased" when the interval of the bias lies above 0; "unbiased" when it contains 0
            and ends below ``tolerance``; else "open".
    """

    layer: str
    estimator: str
    claims_unbiased: bool
    relative_bias: float
    relative_bias_low: float
    relative_bias_high: float
    cosine: float
    norm_ratio: float
    added_variance: float
    noise_multiplier: float
    verdict: Verdict

    @property
    def is_defect(self) -> bool:
        """Whether the measurement contradicts the claim of being unbiased."""
        return self.claims_unbiased and self.verdict == "biased"


@dataclass(frozen=True)
class GradientProbeReport:
    """All layers and estimators of one probe.

    Attributes:
        batches: how many batches were used.
        tolerance: largest relative bias that "unbiased" leaves possible.
        rows: layer by layer, in the order of the model.
    """

    batches: int
    tolerance: float
    rows: tuple[EstimatorProbe, ...]


def probe_gradient(
    model: nn.Module,
    batches: Iterable[Any],
    loss_of: Callable[[nn.Module, Any], torch.Tensor],
    estimators: Sequence[GradientEstimator],
    *,
    where: Where | None = None,
    tolerance: float = 0.1,
    seed: int = 0,
) -> GradientProbeReport:
    """Compare estimated with exact weight gradients of a fixed model over many batches.

    With D = estimate - exact of one batch, the squared bias ||E D||^2 is estimated by the mean of
    <D_i, D_j> over pairs of different groups of batches, whose mean is ||E D||^2 exactly. Its
    interval is that of the jackknife over the groups, which errs on the wide side when there is no
    bias. Batches must be independent draws of the data for the interval to hold.

    The model is copied and its parameters stay as they are; it runs in the mode it is in.

    Args:
        model: the network.
        batches: at least 16; a multiple of 8 is used, the rest left out.
        loss_of: loss of (model, batch), a scalar with a graph.
        estimators: what to compare with the exact gradient.
        where: as in :func:`slimgrad.approximate`.
        tolerance: largest relative bias under which an estimator may be called unbiased, > 0.
        seed: of the estimators' draws.

    Returns:
        One row for every layer and estimator.

    Raises:
        ConfigError: too few batches, no layer, no estimator, or one that makes no gradient.

    References:
        The test of averaging approximated and full gradients at an untrained layer, which reviews
        of Wang, Nelaturu, Amarasinghe (2019) asked for.
    """
    if not 0 < tolerance < math.inf:
        raise ConfigError(f"tolerance must be above 0, got {tolerance!r}")
    if not estimators:
        raise ConfigError("name at least one estimator to compare with the exact gradient")
    for estimator in estimators:
        if not estimator.needs_gradient:
            raise ConfigError(f"{estimator!r} makes no gradient, so there is nothing to compare")
    model = copy.deepcopy(bare_model(model))
    layers = [c for c in candidates(model, where) if not c.reason]
    if not layers:
        raise ConfigError("the model has no layer whose weight gradient can be estimated")
    tape = LayerTape({layer.name: layer.module for layer in layers})
    moments = {(layer.name, k): PairedMoments() for layer in layers for k in range(len(estimators))}
    count = _run(model, batches, loss_of, estimators, tape, moments, seed)
    rows = tuple(
        _row(layer.name, estimator, moments[layer.name, k], tolerance)
        for layer in layers
        for k, estimator in enumerate(estimators)
    )
    return GradientProbeReport(count, tolerance, rows)


def _run(
    model: nn.Module,
    batches: Iterable[Any],
    loss_of: Callable[[nn.Module, Any], torch.Tensor],
    estimators: Sequence[GradientEstimator],
    tape: LayerTape,
    moments: dict[tuple[str, int], PairedMoments],
    seed: int,
) -> int:
    given = list(batches)
    count = len(given) // GROUPS * GROUPS
    if count < 2 * GROUPS:
        raise ConfigError(f"a probe needs at least {2 * GROUPS} batches, got {len(given)}")
    for number, batch in enumerate(given[:count]):
        with tape:
            loss_of(model, batch).backward()
        group = number * GROUPS // count
        for name in tape.names:
            exact = tape.exact(name)
            for k, estimator in enumerate(estimators):
                draws = [
                    tape.estimate(name, estimator, stream_key(seed, number, f"{name}/{draw}"))
                    for draw in range(2 if estimator.needs_key else 1)
                ]
                moments[name, k].add(group, exact, draws)
        model.zero_grad(set_to_none=True)
    return count


def _row(
    layer: str, estimator: GradientEstimator, moments: PairedMoments, tolerance: float
) -> EstimatorProbe:
    square, error = moments.squared_bias()
    scale = moments.mean_square_norm
    if scale == 0:
        raise ConfigError(f"layer {layer!r} has a zero gradient in every batch: nothing to compare")
    low, high = (square - error) / scale, (square + error) / scale
    verdict: Verdict = "open"
    if low > 0:
        verdict = "biased"
    elif high <= tolerance**2:
        verdict = "unbiased"
    return EstimatorProbe(
        layer=layer,
        estimator=repr(estimator),
        claims_unbiased=estimator.unbiased,
        relative_bias=_root(square / scale),
        relative_bias_low=_root(low),
        relative_bias_high=_root(high),
        cosine=moments.mean_cosine,
        norm_ratio=_root(moments.mean_square_estimate / scale),
        added_variance=moments.draw_variance / moments.batch_noise,
        noise_multiplier=1 + moments.mean_square_error / moments.batch_noise,
        verdict=verdict,
    )


def _root(square: float) -> float:
    return math.sqrt(max(square, 0.0))
