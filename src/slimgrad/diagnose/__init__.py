"""Measurements that hold a method to what it claims."""

from __future__ import annotations

from slimgrad.diagnose.compression_probe import (
    CompressionProbeReport,
    TensorProbe,
    probe_compression,
)
from slimgrad.diagnose.gradient_probe import EstimatorProbe, GradientProbeReport, probe_gradient
from slimgrad.diagnose.normalisation import has_batch_norm, without_batch_norm

__all__ = [
    "CompressionProbeReport",
    "EstimatorProbe",
    "GradientProbeReport",
    "TensorProbe",
    "has_batch_norm",
    "probe_compression",
    "probe_gradient",
    "without_batch_norm",
]
