"""EDEN: the projection it keeps, its error on any vector, and how little it is biased."""

import math
import pickle

import pytest
import torch

from slimgrad import kernels, theory
from slimgrad.comm.compressor import Compressor
from slimgrad.comm.quantizers import EDEN, NUQSGD
from slimgrad.core.errors import ConfigError

BLOCK, REPEATS = 512, 4000
ALARM = 1e-7
TYPICAL = {bits: theory.normal_distortion(theory.normal_levels(bits)) for bits in (1, 2, 3, 4)}


def vectors():
    generator = torch.Generator().manual_seed(5)
    uneven = torch.zeros(BLOCK)
    uneven[7], uneven[300] = 1.0, 0.9
    eight = torch.zeros(BLOCK)
    eight[torch.randperm(BLOCK, generator=generator)[:8]] = torch.linspace(0.3, 1, 8)
    plain = torch.full((BLOCK,), 0.15)
    plain[5] = 1.0
    return {
        "random": torch.randn(BLOCK, generator=generator),
        "heavy-tailed": torch.randn(BLOCK, generator=generator) ** 5,
        "one": torch.eye(BLOCK)[9],
        "two": uneven,
        "eight": eight,
        "equal": torch.ones(BLOCK),
        "spike on a plain": plain,
        "tiny": torch.randn(BLOCK, generator=generator) * 1e-30,
        "huge": torch.randn(BLOCK, generator=generator) * 1e30,
    }


def repeated(quantizer, vector):
    """(REPEATS, 512) roundings of ``vector`` over its norm, and it."""
    frame = Compressor(quantizer).compress(vector.repeat(REPEATS), key="w", step=0)
    norm = vector.double().norm()
    decoded = Compressor(quantizer).decompress(frame).view(REPEATS, BLOCK)
    return decoded.double() / norm, vector.double() / norm


@pytest.mark.parametrize("bits", [1, 2, 3, 4])
@pytest.mark.parametrize("name", vectors())
def test_projection_variance_and_bias(bits, name):
    quantizer = EDEN(bits=bits)
    rounded, exact = repeated(quantizer, vectors()[name])
    projections = rounded @ exact
    assert float((projections - 1).abs().max()) < 1e-5
    typical = TYPICAL[bits] / (1 - TYPICAL[bits])
    errors = (rounded - exact).square().sum(1)
    # The mean of repeats whose spread was measured: eight standard deviations, below 1e-14 each.
    slack = 8 * float(errors.std()) / math.sqrt(REPEATS)
    assert float(errors.mean()) <= 1.06 * typical + slack
    assert float(errors.mean()) <= quantizer.variance_bound(BLOCK)
    # ||mean - v||^2 = bias^2 + noise, noise having mean relvar / REPEATS; its spread is below it.
    measured = float((rounded.mean(0) - exact).square().sum())
    assert measured <= 0.035**2 + 2 * typical / REPEATS


@pytest.mark.parametrize("bits", [2, 4])
def test_the_mean_is_far_closer_than_one_rotation_alone_would_bring_it(bits):
    vector = vectors()["two"]
    levels = EDEN(bits=bits).level_grid.levels
    shared = {"levels": levels, "bits": bits, "key": 3}
    unit = theory.normal_levels(bits)[-1]
    distance = {}
    for spread in (1.0, 3 / 64):
        scales, packed = kernels.rotate_quantize(
            vector.repeat(REPEATS), unit=unit, spread=spread, **shared
        )
        decoded = kernels.rotate_dequantize(packed, scales, n=REPEATS * BLOCK, **shared)
        mean = decoded.view(REPEATS, BLOCK).double().mean(0)
        distance[spread] = float((mean - vector).norm() / vector.norm())
    assert distance[3 / 64] < distance[1.0] / 5


def test_its_error_is_an_eighth_of_that_of_nuqsgd_at_the_same_width():
    vector = torch.randn(40 * BLOCK, generator=torch.Generator().manual_seed(2))
    error = {}
    for quantizer in (EDEN(bits=4), NUQSGD(bits=4)):
        compressor = Compressor(quantizer)
        frame = compressor.compress(vector, key="w", step=0)
        assert frame.numel() <= 64 + 32 + 4 * 40 + 256 * 40
        error[quantizer.name] = float((compressor.decompress(frame) - vector).square().sum())
    assert error["eden"] <= error["nuqsgd"] / 8


def test_the_same_stream_gives_the_same_bytes_and_another_rank_others():
    compressor = Compressor(EDEN())
    vector = torch.randn(3000, generator=torch.Generator().manual_seed(1))
    first = compressor.compress(vector, key="a", step=1, rank=0)
    assert torch.equal(first, compressor.compress(vector, key="a", step=1, rank=0))
    assert not torch.equal(first[64:], compressor.compress(vector, key="a", step=1, rank=1)[64:])


@pytest.mark.parametrize("bits", [1, 2, 3, 4])
def test_levels_are_the_best_for_a_normal_distribution(bits):
    grid = EDEN(bits=bits).level_grid
    best = theory.normal_levels(bits)
    assert grid.grid == "no_zero"
    assert grid.levels == pytest.approx([level / best[-1] for level in best], rel=1e-7)
    assert grid.levels[-1] == 1.0


def test_sums_in_float32_and_float64():
    vector = torch.randn(700, generator=torch.Generator().manual_seed(1))
    compressor = Compressor(EDEN(bits=3))
    frame = compressor.compress(vector, key="a", step=0)
    decoded = compressor.decompress(frame)
    for dtype in (torch.float32, torch.float64):
        total = compressor.decompress_add_(frame, torch.ones(700, dtype=dtype), 0.5)
        assert torch.equal(total, 1 + 0.5 * decoded.to(dtype))


def test_quantized_says_how_it_was_made():
    quantized = EDEN(bits=3).quantize(torch.ones(600), key=7)
    assert (quantized.n, quantized.symbols, quantized.bits) == (600, 1024, 3)
    assert (quantized.norm, quantized.transform, quantized.key) == ("projection", "rotation", 7)
    assert EDEN().variance_bound(0) == 0.0


def test_equality_repr_and_pickle():
    assert repr(EDEN()) == "EDEN(bits=4, bucket_size=512)"
    assert pickle.loads(pickle.dumps(EDEN(bits=2))) == EDEN(bits=2) != EDEN()


@pytest.mark.parametrize("bits", [0, 5, -1, 2.5, True, "4"])
def test_bits_out_of_range_are_named(bits):
    with pytest.raises(ConfigError, match=f"EDEN needs bits from 1 to 4.*bits={bits!r}"):
        EDEN(bits=bits)


def test_other_buckets_are_refused():
    with pytest.raises(ConfigError, match="buckets of 512 components, got bucket_size=256"):
        EDEN(bucket_size=256)
