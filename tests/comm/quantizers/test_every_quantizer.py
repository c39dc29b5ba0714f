"""What every registered quantizer promises: no bias where it says so, and its variance bound.

A vector is repeated R times in one call; every repeat is one bucket with rounding of its own. The
tests use Bernstein's inequality for a mean of R independent values x with spread s and range b:
it exceeds its expectation by more than s sqrt(2 q / R) + b q / (3 R), q = ln(1 / a), with
probability at most a. The largest value seen among R stands for the largest possible one.
"""

import math

import pytest
import torch
from examples import EXAMPLES, NOT_RANDOM, QUANTIZERS_HERE, normal, repeated, vectors

from slimgrad.comm.compressor import Compressor
from slimgrad.comm.quantizers import NUQSGD, QSGD, QUANTIZERS, Dithered, NoZero, QSGDinf, TernGrad
from slimgrad.comm.quantizers.natural import Natural

REPEATS = 400
RATE = math.log(2 / 1e-8)  # for each of the comparisons, of which there are some hundreds


def bernstein(values):
    """How far the mean of independent ``values`` over dimension 0 may lie off, at rate RATE."""
    count = len(values)
    spread, reach = values.std(0), (values - values.mean(0)).abs().amax(0)
    return spread * math.sqrt(2 * RATE / count) + reach * RATE / (3 * count)


def test_no_registered_quantizer_is_left_out():
    assert set(EXAMPLES) == set(QUANTIZERS)
    for name, group in EXAMPLES.items():
        assert all(quantizer.name == name for quantizer in group)


@pytest.mark.parametrize("quantizer", [q for q in QUANTIZERS_HERE if q.unbiased], ids=repr)
def test_the_mean_of_repeats_is_the_vector(quantizer):
    """The length of the mean error, and the mean error along directions chosen beforehand.

    E||mean error||^2 = variance / R; a vector mean exceeds its expected length by more than
    b sqrt(2 q / R) with probability at most exp(-q), b the longest error.
    """
    signs = torch.stack([normal(seed=seed).sign() for seed in range(4)]).double()
    for name, vector in vectors(quantizer).items():
        exact = vector.double()
        length = float(exact.norm())
        error = (repeated(quantizer, vector, REPEATS) - exact) / length
        bound = min(quantizer.variance_bound(len(vector)), float(error.square().sum(1).max()))
        longest = float(error.norm(dim=1).max())
        # Chances come in steps of 2**-16, and scales carry float32 rounding.
        rounding = 2.0**-15 * longest + 1e-5
        allowed = math.sqrt(bound / REPEATS) + longest * math.sqrt(2 * RATE / REPEATS)
        assert float(error.mean(0).norm()) <= allowed + rounding, name
        directions = torch.cat([signs / math.sqrt(len(exact)), exact[None] / length])
        along = error @ directions.T
        assert bool((along.mean(0).abs() <= bernstein(along) + rounding).all()), name


@pytest.mark.parametrize("quantizer", QUANTIZERS_HERE, ids=repr)
def test_measured_variance_is_within_the_bound(quantizer):
    """Also the contraction of those that are biased."""
    bound = quantizer.variance_bound(512)
    assert bound > 0
    for name, vector in vectors(quantizer).items():
        exact = vector.double()
        rounded = repeated(quantizer, vector, REPEATS)
        squares = (rounded - exact).square().sum(1) / float(exact.square().sum())
        slack = float(bernstein(squares)) + 1e-5
        assert float(squares.mean()) <= bound * (1 + 1e-5) + slack, name


@pytest.mark.parametrize(
    "quantizer",
    [
        NUQSGD(bits=4),
        NUQSGD(bits=3),
        NUQSGD(bits=3, norm="linf"),
        QSGD(bits=3),
        QSGD(bits=4),
        QSGDinf(bits=2),
        QSGDinf(bits=4),
        TernGrad(),
        Natural(),
        NoZero("uniform", bits=2),
        NoZero(bits=1, norm="linf"),
        Dithered(),
        Dithered(3.0, bits=2),
        *EXAMPLES["efsign"],
    ],
    ids=repr,
)
def test_the_bound_is_attained_on_the_worst_vector(quantizer):
    vector = vectors(quantizer)["worst"]
    exact = vector.double()
    errors = (repeated(quantizer, vector, 50 * REPEATS) - exact).square().sum(1)
    squares = errors / float(exact.square().sum())
    assert float(bernstein(squares)) < 0.02 * quantizer.variance_bound(512)
    assert float(squares.mean()) == pytest.approx(quantizer.variance_bound(512), rel=0.02)


@pytest.mark.parametrize(
    "quantizer", [q for q in QUANTIZERS_HERE if not q.unbiased and q.name != "eden"], ids=repr
)
def test_those_called_biased_are(quantizer):
    """EDEN's bias is small, and only some vectors have it: test_eden.py."""
    vector = normal()
    error = (repeated(quantizer, vector, REPEATS) - vector.double()).mean(0)
    assert float(error.norm()) > 0.1 * float(vector.norm())


@pytest.mark.parametrize("quantizer", QUANTIZERS_HERE, ids=repr)
def test_streams_depend_on_seed_step_name_and_rank_alone(quantizer):
    compressor = Compressor(quantizer)
    vector = normal(3000)
    base = {"key": "w", "step": 1, "rank": 0, "seed": 0}
    first = compressor.compress(vector, **base)
    torch.manual_seed(99)
    for serial in (False, True):
        assert torch.equal(first, compressor.compress(vector, serial=serial, **base))
    for change in ({"step": 2}, {"rank": 1}, {"seed": 1}):
        other = compressor.compress(vector, **{**base, **change})
        same = torch.equal(first[64:], other[64:])
        assert same == (quantizer.name in NOT_RANDOM), change


@pytest.mark.parametrize("quantizer", QUANTIZERS_HERE, ids=repr)
@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16, torch.float32, torch.float64])
def test_every_dtype_gives_the_frame_of_its_float32_values(quantizer, dtype):
    compressor, vector = Compressor(quantizer), normal(700).to(dtype)
    frame = compressor.compress(vector, key="w", step=0)
    assert torch.equal(frame, compressor.compress(vector.float(), key="w", step=0))


@pytest.mark.parametrize("quantizer", QUANTIZERS_HERE, ids=repr)
@pytest.mark.parametrize("bad", [math.inf, -math.inf, math.nan])
def test_a_component_that_is_not_finite_is_seen_and_stays_in_its_bucket(quantizer, bad):
    size = quantizer.bucket_size
    vector = normal(3 * size)
    vector[size + size // 2] = bad
    compressor = Compressor(quantizer)
    back = compressor.decompress(compressor.compress(vector, key="w", step=0)).view(3, size)
    assert back.isnan().all(1).tolist() == [False, True, False]
    assert bool(back[[0, 2]].isfinite().all())


@pytest.mark.parametrize("quantizer", QUANTIZERS_HERE, ids=repr)
@pytest.mark.parametrize("n", [0, 1, 511, 513])
def test_zeros_of_any_length_come_back(quantizer, n):
    compressor = Compressor(quantizer)
    back = compressor.decompress(compressor.compress(torch.zeros(n), key="w", step=0))
    expected = torch.ones(n) if quantizer.name == "sign" else torch.zeros(n)
    assert torch.equal(back, expected)
