"""Estimators of the weight gradient, one a file, by name in ``ESTIMATORS``."""

from __future__ import annotations

from slimgrad.approx.estimators.base import GradientEstimator, LayerGeometry, WeightGradCost
from slimgrad.approx.estimators.blockmeans import BlockMeans
from slimgrad.approx.estimators.channeltopk import ChannelTopK
from slimgrad.approx.estimators.exact import Exact
from slimgrad.approx.estimators.exactpositions import ExactPositions
from slimgrad.approx.estimators.meprop import MeProp
from slimgrad.approx.estimators.patchsampling import PatchSampling
from slimgrad.approx.estimators.pooledmeans import PooledMeans
from slimgrad.approx.estimators.random import Random
from slimgrad.approx.estimators.rowsampling import RowSampling
from slimgrad.approx.estimators.samplesampling import SampleSampling
from slimgrad.approx.estimators.skip import Skip
from slimgrad.approx.estimators.stratifiedsampling import StratifiedSampling
from slimgrad.approx.estimators.topk import TopK
from slimgrad.approx.estimators.topone import TopOne
from slimgrad.approx.estimators.walshpairs import WalshPairs
from slimgrad.approx.estimators.zero import Zero
from slimgrad.core.registry import Registry

ESTIMATORS = Registry[type[GradientEstimator]]("estimator")
for _part in (
    Exact,
    ExactPositions,
    Zero,
    Skip,
    Random,
    TopOne,
    TopK,
    RowSampling,
    StratifiedSampling,
    PatchSampling,
    SampleSampling,
    BlockMeans,
    WalshPairs,
    PooledMeans,
    MeProp,
    ChannelTopK,
):
    ESTIMATORS.add(_part.name)(_part)

__all__ = [
    "ESTIMATORS",
    "BlockMeans",
    "ChannelTopK",
    "Exact",
    "ExactPositions",
    "GradientEstimator",
    "LayerGeometry",
    "MeProp",
    "PatchSampling",
    "PooledMeans",
    "Random",
    "RowSampling",
    "SampleSampling",
    "Skip",
    "StratifiedSampling",
    "TopK",
    "TopOne",
    "WalshPairs",
    "WeightGradCost",
    "Zero",
]
