"""Cheaper gradients to compute: estimators of the weight gradient, and when to use them."""

from __future__ import annotations

from slimgrad.approx.convert import approximate
from slimgrad.approx.estimators import (
    ESTIMATORS,
    Exact,
    ExactPositions,
    GradientEstimator,
    LayerGeometry,
    Random,
    RowSampling,
    Skip,
    TopOne,
    WeightGradCost,
    Zero,
)
from slimgrad.approx.handle import ApproximationHandle
from slimgrad.approx.relu import BitMaskReLU, use_bit_mask_relu
from slimgrad.approx.report import ApproximationReport, LayerReport
from slimgrad.approx.schedules import (
    SCHEDULES,
    Alternate,
    Always,
    EveryNthLayer,
    EveryNthStep,
    Schedule,
    ScheduledLayer,
)
from slimgrad.approx.tune import LayerTiming, TuneReport, tune

__all__ = [
    "ESTIMATORS",
    "SCHEDULES",
    "Alternate",
    "Always",
    "ApproximationHandle",
    "ApproximationReport",
    "BitMaskReLU",
    "EveryNthLayer",
    "EveryNthStep",
    "Exact",
    "ExactPositions",
    "GradientEstimator",
    "LayerGeometry",
    "LayerReport",
    "LayerTiming",
    "Random",
    "RowSampling",
    "Schedule",
    "ScheduledLayer",
    "Skip",
    "TopOne",
    "TuneReport",
    "WeightGradCost",
    "Zero",
    "approximate",
    "tune",
    "use_bit_mask_relu",
]
