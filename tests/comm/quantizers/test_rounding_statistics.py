"""Unbiased, and within the variance bound, to false-alarm rates stated with each test.

A vector is repeated R times in one call; every repeat is one bucket with rounding of its own. Both
tests use Hoeffding's inequality, so they assume nothing about the distribution: a mean of R
independent values in intervals of width w exceeds its expectation by more than
w sqrt(ln(1 / a) / (2 R)) with probability at most a.
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


@pytest.mark.parametrize("quantizer", QUANTIZERS, ids=repr)
def test_measured_variance_is_within_the_bound(quantizer):
    # False-alarm rate at most ALARM for each vector.
    bound = quantizer.variance_bound(N)
    for name, vector in vectors(quantizer).items():
        rounded, exact, widths = repeated_rounding(quantizer, vector)
        energy = float(exact.square().sum())
        measured = float((rounded - exact).square().sum(1).mean()) / energy
        spread = float(widths.square().norm()) / energy
        tolerance = spread * math.sqrt(math.log(1 / ALARM) / (2 * REPEATS))
        assert measured <= bound * (1 + 1e-5) + tolerance, name


@pytest.mark.parametrize(
    ("quantizer", "name"),
    [
        (QSGD(bits=4, bucket_size=N), "equal"),
        (QSGD(bits=3, bucket_size=N), "equal"),
        (NUQSGD(bits=3, bucket_size=N), "equal"),
        (QSGDinf(bits=2, bucket_size=N), "worst of linf"),
        (QSGDinf(bits=3, bucket_size=N), "worst of linf"),
        (NUQSGD(bits=3, bucket_size=N, norm="linf"), "worst of linf"),
    ],
    ids=repr,
)
def test_the_bound_is_attained_on_the_worst_vector(quantizer, name):
    # False-alarm rate at most 2 ALARM.
    rounded, exact, widths = repeated_rounding(quantizer, vectors(quantizer)[name])
    energy = float(exact.square().sum())
    measured = float((rounded - exact).square().sum(1).mean()) / energy
    spread = float(widths.square().norm()) / energy
    tolerance = spread * math.sqrt(math.log(1 / ALARM) / (2 * REPEATS))
    assert measured == pytest.approx(quantizer.variance_bound(N), rel=0.02, abs=tolerance)


def test_streams_depend_on_seed_step_name_and_rank_alone():
    compressor = Compressor(NUQSGD(bits=4))
    vector = torch.randn(3000, generator=torch.Generator().manual_seed(1))
    base = {"key": "a", "step": 1, "rank": 0, "seed": 0}
    first = compressor.compress(vector, **base)
    torch.manual_seed(99)
    assert torch.equal(first, compressor.compress(vector, **base))
    for change in ({"key": "b"}, {"step": 2}, {"rank": 1}, {"seed": 1}):
        other = compressor.compress(vector, **{**base, **change})
        assert not torch.equal(first[64:], other[64:]), change
