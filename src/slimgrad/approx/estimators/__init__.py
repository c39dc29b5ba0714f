"""Estimators of the weight gradient, one a file, by name in ``ESTIMATORS``."""

from __future__ import annotations

from slimgrad.approx.estimators.base import GradientEstimator, LayerGeometry, WeightGradCost
from slimgrad.approx.estimators.exact import Exact
from slimgrad.approx.estimators.exactpositions import ExactPositions
from slimgrad.approx.estimators.random import Random
from slimgrad.approx.estimators.rowsampling import RowSampling
from slimgrad.approx.estimators.skip import Skip
from slimgrad.approx.estimators.topone import TopOne
from slimgrad.approx.estimators.zero import Zero
from slimgrad.core.registry import Registry

ESTIMATORS = Registry[type[GradientEstimator]]("estimator")
for _part in (Exact, ExactPositions, Zero, Skip, Random, TopOne, RowSampling):
    ESTIMATORS.add(_part.name)(_part)

__all__ = [
    "ESTIMATORS",
    "Exact",
    "ExactPositions",
    "GradientEstimator",
    "LayerGeometry",
    "Random",
    "RowSampling",
    "Skip",
    "TopOne",
    "WeightGradCost",
    "Zero",
]
