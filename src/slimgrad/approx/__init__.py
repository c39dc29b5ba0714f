"""Cheaper gradients to compute: estimators of the weight gradient, and when to use them."""

from __future__ import annotations

from slimgrad.approx.convert import approximate
from slimgrad.approx.estimators import (
    ESTIMATORS,
    BlockMeans,
    ChannelTopK,
    Exact,
    ExactPositions,
    GradientEstimator,
    LayerGeometry,
    MeProp,
    PatchSampling,
    PooledMeans,
    Random,
    RowSampling,
    SampleSampling,
    Skip,
    StratifiedSampling,
    TopK,
    TopOne,
    WalshPairs,
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
    "BlockMeans",
    "ChannelTopK",
    "EveryNthLayer",
    "EveryNthStep",
    "Exact",
    "ExactPositions",
    "GradientEstimator",
    "LayerGeometry",
    "LayerReport",
    "LayerTiming",
    "MeProp",
    "PatchSampling",
    "PooledMeans",
    "Random",
    "RowSampling",
    "SampleSampling",
    "Schedule",
    "ScheduledLayer",
    "Skip",
    "StratifiedSampling",
    "TopK",
    "TopOne",
    "TuneReport",
    "WalshPairs",
    "WeightGradCost",
    "Zero",
    "approximate",
    "tune",
    "use_bit_mask_relu",
]
