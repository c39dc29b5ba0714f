"""Dithered: its error is uniform whatever the vector, and its variance is what is promised.

A vector is repeated R times in one call; every repeat is one bucket with a dither of its own. The
error of a component over the step is uniform in (-1/2, 1/2), its square has mean 1/12 and spread
0.0745. The bounds below are Hoeffding's and Bernstein's inequality, false-alarm rate 1e-7 each.
"""

import math
import pickle
import re

import pytest
import torch

from slimgrad.comm.compressor import Compressor
from slimgrad.comm.quantizers import Dithered
from slimgrad.core.errors import ConfigError

N, REPEATS = 256, 2000
RATE = math.log(2 / 1e-7)


def vectors():
    generator = torch.Generator().manual_seed(17)
    normal = torch.randn(N, generator=generator)
    sparse = torch.where(torch.arange(N) % 16 == 0, normal.sign(), 0.0)
    one_hot = torch.zeros(N)
    one_hot[3] = -2.0
    return {
        "random": normal,
        "heavy-tailed": normal**5,
        "sparse": sparse,
        "one component": one_hot,
        "equal": torch.full((N,), 0.1),
        "tiny": normal * 1e-30,
        "huge": normal * 1e37,
        "on a step": torch.arange(N).remainder(3) - 1.0,
    }


def errors(quantizer, vector):
    """(R, n) errors, and the norm of the vector; float64."""
    compressor = Compressor(quantizer)
    frame = compressor.compress(vector.repeat(REPEATS), key="w", step=0)
    rounded = compressor.decompress(frame).view(REPEATS, N).double()
    return rounded - vector.double(), float(vector.double().norm())


def exact_variance(quantizer, vector):
    v = vector.double()
    largest_integer = 2 ** (quantizer.bits - 1) - 1
    rms = float(v.square().mean().sqrt())
    step = max(quantizer.step_rms * rms, float(v.abs().max()) / largest_integer)
    return step, N * step**2 / 12 / float(v.square().sum())


QUANTIZERS = [
    Dithered(bucket_size=N),
    Dithered(step_rms=0.5, bucket_size=N),
    Dithered(step_rms=3.0, bits=2, bucket_size=N),
    Dithered(step_rms=0.05, bits=8, bucket_size=N),
]


@pytest.mark.parametrize("quantizer", QUANTIZERS, ids=repr)
@pytest.mark.parametrize("name", vectors())
def test_unbiased_with_the_promised_variance(quantizer, name):
    vector = vectors()[name]
    step, variance = exact_variance(quantizer, vector)
    error, norm = errors(quantizer, vector)
    roundings = 1e-6 * float(vector.abs().max())
    assert float(error.abs().max()) <= step / 2 * (1 + 1e-5) + roundings
    mean = error.mean(0).abs().max()
    tolerance = step * math.sqrt((RATE + math.log(N)) / (2 * REPEATS))
    assert float(mean) <= tolerance + step * 2.0**-17 + roundings
    measured = float(error.square().sum(1).mean()) / norm**2
    draws = N * REPEATS
    spread = 0.0745 * math.sqrt(2 * RATE / draws) + RATE / (6 * draws)
    assert spread * 12 < 0.01
    assert measured == pytest.approx(variance, rel=spread * 12)
    assert measured <= quantizer.variance_bound(N) * (1 + spread * 12)


@pytest.mark.parametrize("quantizer", QUANTIZERS[:2], ids=repr)
def test_variance_is_step_squared_over_twelve_unless_the_maximum_limits(quantizer):
    for name in ("equal", "tiny", "huge", "random"):
        _, variance = exact_variance(quantizer, vectors()[name])
        limited = vectors()[name].abs().max() > 7 * quantizer.step_rms * (
            vectors()[name].double().square().mean().sqrt()
        )
        assert not limited
        assert variance == pytest.approx(quantizer.step_rms**2 / 12, rel=1e-6)


def test_the_bound_is_attained_by_one_component():
    for quantizer in QUANTIZERS:
        _, variance = exact_variance(quantizer, vectors()["one component"])
        assert quantizer.variance_bound(N) == pytest.approx(variance, rel=1e-4)
        assert quantizer.variance_bound(10**9) == quantizer.variance_bound(N)
    assert Dithered().variance_bound(0) == 0.0


def test_the_error_does_not_depend_on_the_vector():
    """The same dither, other vectors of the same step: correlation of errors and components."""
    vector = vectors()["random"]
    error, _ = errors(QUANTIZERS[0], vector)
    correlation = (error * vector.double()).sum(1) / (vector.double().norm())
    # A sum of uniform errors weighted by a unit vector: sub-Gaussian with parameter step / 2.
    step, _ = exact_variance(QUANTIZERS[0], vector)
    assert float(correlation.mean().abs()) <= step / 2 * math.sqrt(2 * RATE / REPEATS)


def test_frames_say_how_they_were_made_and_others_read_them():
    quantizer = Dithered(step_rms=0.5, bits=5, bucket_size=10)
    vector = torch.linspace(-1, 1, 25)
    quantized = quantizer.quantize(vector, key=2**64 - 1)
    assert (quantized.norm, quantized.transform, quantized.grid.grid) == (
        "step",
        "dither",
        "integer",
    )
    assert quantized.grid.levels == tuple(range(16))
    frame = Compressor(quantizer).compress(vector, key="w", step=0)
    total = torch.ones(25)
    Compressor(None).decompress_add_(frame, total, alpha=0.5)
    assert torch.equal(total, 1 + 0.5 * Compressor(None).decompress(frame))
    wide = torch.ones(25, dtype=torch.float64)
    Compressor(None).decompress_add_(frame, wide)
    assert torch.equal(wide, 1 + Compressor(None).decompress(frame).double())


def test_equality_hash_repr_and_pickle():
    assert Dithered() == Dithered(1.0, 4, 512) != Dithered(step_rms=0.5)
    assert len({Dithered(), Dithered(), Dithered(bits=3)}) == 2
    assert repr(Dithered()) == "Dithered(step_rms=1.0, bits=4, bucket_size=512)"
    assert eval(repr(Dithered(0.25))) == pickle.loads(pickle.dumps(Dithered(0.25)))


@pytest.mark.parametrize(
    ("setting", "value"),
    [
        *(("step_rms", v) for v in (0.0, -1.0, math.nan, math.inf, 2.0**65, "1", True)),
        *(("bits", v) for v in (1, 9, 4.0, True)),
        *(("bucket_size", v) for v in (0, 2**31, 512.0, False)),
    ],
)
def test_values_out_of_range_are_named(setting, value):
    with pytest.raises(ConfigError, match="Dithered needs .*" + re.escape(f"{setting}={value!r}")):
        Dithered(**{setting: value})
