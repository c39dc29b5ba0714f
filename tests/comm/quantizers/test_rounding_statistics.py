"""Rounding to levels is unbiased in every component; variances: test_every_quantizer.py.

A vector is repeated R times in one call; every repeat is one bucket with rounding of its own.
Hoeffding's inequality assumes nothing about the distribution: a mean of R independent values in
intervals of width w exceeds its expectation by more than w sqrt(ln(1 / a) / (2 R)) with
probability at most a.
"""

import math

import pytest
import torch

from slimgrad.comm.compressor import Compressor
from slimgrad.comm.quantizers import NUQSGD, QSGD, QSGDinf

N, REPEATS = 256, 2000
ALARM = 1e-7

QUANTIZERS = [
    NUQSGD(bits=4, bucket_size=N),
    NUQSGD(bits=3, bucket_size=N, norm="linf"),
    NUQSGD(bits=8, bucket_size=N),
    NUQSGD(bits=4, bucket_size=N, ratio=0.3),
    QSGD(bits=4, bucket_size=N),
    QSGD(bits=8, bucket_size=N),
    QSGDinf(bits=2, bucket_size=N),
    QSGDinf(bits=4, bucket_size=N),
]


def vectors(quantizer):
    generator = torch.Generator().manual_seed(17)
    sparse = torch.zeros(N)
    sparse[:: N // 4] = torch.randn(4, generator=generator)
    first = quantizer.level_grid.levels[1]
    dense = torch.full((N,), (math.sqrt(1 + (N - 1) * first**2) - 1) / ((N - 1) * first))
    dense[0] = 1.0
    spike = torch.full((N,), 0.5 * first)
    spike[0] = math.sqrt(max(1 - (N - 1) * (0.5 * first) ** 2, 0.25))
    return {
        "random": torch.randn(N, generator=generator),
        "heavy-tailed": torch.randn(N, generator=generator) ** 5,
        "sparse": sparse,
        "equal": torch.ones(N),
        "worst of linf": dense,
        "half a level and a spike": spike,
        "tiny": torch.randn(N, generator=generator) * 1e-30,
        "huge": torch.randn(N, generator=generator) * 1e30,
    }


def repeated_rounding(quantizer, vector):
    """(R, n) roundings, and the widths of the bins the components lie in, both over the norm."""
    frame = Compressor(quantizer).compress(vector.repeat(REPEATS), key="w", step=0)
    rounded = Compressor(quantizer).decompress(frame).view(REPEATS, N).double()
    v = vector.double()
    norm = v.norm() if quantizer.norm == "l2" else v.abs().max()
    levels = torch.tensor(quantizer.level_grid.levels, dtype=torch.float64)
    above = torch.searchsorted(levels, v.abs() / norm, right=True).clamp(1, len(levels) - 1)
    return rounded / norm, v / norm, levels[above] - levels[above - 1]


@pytest.mark.parametrize("quantizer", QUANTIZERS, ids=repr)
def test_unbiased(quantizer):
    # False-alarm rate at most ALARM for each vector: half for the components, half for their sum.
    for name, vector in vectors(quantizer).items():
        rounded, exact, widths = repeated_rounding(quantizer, vector)
        error = rounded.mean(0) - exact
        # Probabilities are multiples of 2**-16; norms carry float32 rounding.
        allowed_bias = widths * 2.0**-17 + exact.abs() * 1e-5
        tolerance = widths * math.sqrt(math.log(4 * N / ALARM) / (2 * REPEATS))
        assert bool((error.abs() <= tolerance + allowed_bias).all()), name
        total = float(widths.norm()) * math.sqrt(math.log(4 / ALARM) / (2 * REPEATS))
        assert abs(float(error.sum())) <= total + float(allowed_bias.sum()), name
