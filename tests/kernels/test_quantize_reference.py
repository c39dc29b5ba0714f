"""What the reference must satisfy by itself: levels, unbiasedness, variance, special values."""

from __future__ import annotations

import math

import pytest
import torch

from slimgrad import kernels
from slimgrad.kernels import backend
from slimgrad.kernels.reference import quantize as reference

FALSE_ALARM = 1e-6


def uniform(m: int) -> tuple[float, ...]:
    return tuple(j / m for j in range(m + 1))


def exponential(m: int) -> tuple[float, ...]:
    return (0.0, *(2.0 ** (j - m) for j in range(1, m + 1)))


def table(m: int) -> tuple[float, ...]:
    return tuple((j / m) ** 1.7 for j in range(m + 1))


LEVELS = {"uniform": uniform, "exponential": exponential, "table": table}


@pytest.fixture(autouse=True)
def _reference():
    with backend.use_backend("reference"):
        yield


def round_trip(v: torch.Tensor, *, levels, grid, norm, bucket_size, bits, key=0) -> torch.Tensor:
    layout = {"levels": levels, "bits": bits, "bucket_size": bucket_size}
    scales, packed = kernels.quantize(v, grid=grid, norm=norm, key=key, **layout)
    return kernels.dequantize(packed, scales, n=len(v), **layout)


def repeated(v: torch.Tensor, draws: int, **settings) -> torch.Tensor:
    """Independent roundings of ``v``, one a row: buckets of one long vector."""
    long = v.repeat(draws)
    return round_trip(long, bucket_size=len(v), **settings).view(draws, len(v))


@pytest.mark.parametrize("grid", LEVELS)
@pytest.mark.parametrize("bits", [2, 3, 4, 5, 8])
def test_components_on_a_level_stay_exact(grid, bits):
    levels = LEVELS[grid](2 ** (bits - 1) - 1)
    # A power of two as norm makes |x| / norm exact; it is the last level itself.
    v = torch.tensor(levels) * 4
    v = torch.cat([v, -v])
    for key in range(20):
        got = round_trip(
            v, levels=levels, grid=grid, norm="linf", bucket_size=len(v), bits=bits, key=key
        )
        assert torch.equal(got, v)


@pytest.mark.parametrize("grid", LEVELS)
@pytest.mark.parametrize("norm", ["l2", "linf"])
def test_mean_over_draws_is_the_vector(grid, norm):
    """Bernstein's inequality for each of the components, false alarms summed over them."""
    v = torch.randn(64, generator=torch.Generator().manual_seed(1))
    levels = torch.tensor(LEVELS[grid](7))
    draws = 20_000
    got = repeated(v, draws, levels=tuple(levels.tolist()), grid=grid, norm=norm, bits=4, key=11)
    scale = v.norm() if norm == "l2" else v.abs().max()
    r = (v.abs() / scale).double()
    j = (torch.bucketize(r.float(), levels, right=True) - 1).clamp(max=6)
    low, high = levels[j].double(), levels[j + 1].double()
    variance, gap = (high - r) * (r - low), high - low
    rate = math.log(2 * len(v) / FALSE_ALARM)
    resolution = gap * 2.0**-17 + 1e-7
    tolerance = (2 * variance * rate / draws).sqrt() + 2 * gap * rate / (3 * draws) + resolution
    error = (got.double().mean(0) / scale - v / scale).abs()
    assert (error <= tolerance).all()


@pytest.mark.parametrize(
    ("grid", "levels", "norm", "variance"),
    [
        ("exponential", (0.0, 0.25, 0.5, 1.0), "l2", 2.5),
        ("exponential", (0.0, 0.25, 0.5, 1.0), "linf", 1.0),
        ("uniform", (0.0, 1 / 3, 2 / 3, 1.0), "l2", 10 / 9),
        ("uniform", (0.0, 1 / 3, 2 / 3, 1.0), "linf", 1 / 3),
        ("table", (0.0, 0.25, 0.5, 1.0), "l2", 2.5),
    ],
)
def test_variance_of_three_four(grid, levels, norm, variance):
    """E||Q(v) - v||^2 for v = (3, 4), worked by hand from (high - r)(r - low) norm^2."""
    v = torch.tensor([3.0, 4.0])
    draws = 50_000
    got = repeated(v, draws, levels=levels, grid=grid, norm=norm, bits=3, key=5)
    errors = (got.double() - v).square().sum(1)
    # Squared errors lie in [0, 2 (gap norm)^2]: Hoeffding, with the widest gap met here.
    widest = 2 * (0.5 * (5 if norm == "l2" else 4)) ** 2
    tolerance = widest * math.sqrt(math.log(2 / FALSE_ALARM) / (2 * draws))
    assert abs(float(errors.mean()) - variance) <= tolerance
    assert tolerance < 0.2


def test_chances_are_right_to_two_to_the_minus_sixteen():
    """All 65536 values of the random bits, for one component: an exact count."""
    bits = torch.arange(65536)
    for grid in ("uniform", "exponential", "table"):
        levels = torch.tensor(LEVELS[grid](7))
        for r in (0.003, 0.1, 0.3, 0.61, 0.999):
            fraction = torch.full((65536,), r)
            j = reference.round_to_levels(fraction, bits, levels=levels, grid=grid)
            mean = levels.double()[j].mean()
            assert j.max() - j.min() <= 1
            assert abs(mean - fraction[0].double()) <= 2.0**-16 * 0.6


@pytest.mark.parametrize("grid", LEVELS)
@pytest.mark.parametrize("bits", range(2, 9))
def test_the_largest_component_is_exact_under_the_maximum_norm(grid, bits):
    v = torch.randn(4096, generator=torch.Generator().manual_seed(bits))
    got = round_trip(
        v,
        levels=LEVELS[grid](2 ** (bits - 1) - 1),
        grid=grid,
        norm="linf",
        bucket_size=32,
        bits=bits,
    )
    largest = v.view(-1, 32).abs().argmax(1, keepdim=True)
    assert torch.equal(got.view(-1, 32).gather(1, largest), v.view(-1, 32).gather(1, largest))


def test_l2_scales_agree_with_float64():
    v = torch.randn(3000, generator=torch.Generator().manual_seed(3)) * 1e-3
    for bucket_size in (1, 7, 64, 100, 512, 5000):
        scales = reference.bucket_scales(v, norm="l2", bucket_size=bucket_size)
        exact = torch.stack([part.double().norm() for part in v.split(bucket_size)])
        assert ((scales.double() - exact).abs() <= exact * 1e-6).all()


@pytest.mark.parametrize("factor", [1e-45, 1e-40, 1e-30, 1e-20, 1e20, 1e30, 1e38])
def test_norms_at_the_ends_of_float32(factor):
    v = torch.tensor([3.0, -2.0, 0.0, 1.0]) * factor
    exact = v.double().norm()
    scale = reference.bucket_scales(v, norm="l2", bucket_size=4).double()
    largest = torch.finfo(torch.float32).max
    assert abs(scale - exact) <= max(exact * 1e-6, 2.0**-150) or (exact > largest == scale)
    got = round_trip(
        v, levels=exponential(7), grid="exponential", norm="linf", bucket_size=4, bits=4
    )
    assert got[0] == v[0]
    assert got.isfinite().all()


@pytest.mark.parametrize("norm", ["l2", "linf"])
@pytest.mark.parametrize("bad", [math.inf, -math.inf, math.nan])
def test_a_non_finite_component_spoils_its_bucket_and_no_other(norm, bad):
    v = torch.ones(12)
    v[5] = bad
    layout = {"levels": uniform(7), "bits": 4, "bucket_size": 4}
    scales, packed = kernels.quantize(v, grid="uniform", norm=norm, key=1, **layout)
    got = kernels.dequantize(packed, scales, n=12, **layout)
    assert got.isnan().tolist() == [False] * 4 + [True] * 4 + [False] * 4
    symbols = kernels.unpack_symbols(packed, 12, 4)
    assert (symbols[4:8] == 0).all()
    assert (symbols[:4] != 0).any()


@pytest.mark.parametrize("norm", ["l2", "linf"])
def test_zeros_of_both_signs_stay_zero(norm):
    v = torch.tensor([0.0, -0.0, 0.0, -0.0])
    scales, packed = kernels.quantize(
        v, levels=uniform(7), grid="uniform", norm=norm, bucket_size=2, bits=4, key=1
    )
    assert scales.tolist() == [0.0, 0.0]
    assert (packed == 0).all()


def test_there_is_no_negative_zero_symbol():
    v = -torch.rand(5000, generator=torch.Generator().manual_seed(2))
    _, packed = kernels.quantize(
        v, levels=uniform(1), grid="uniform", norm="l2", bucket_size=512, bits=2, key=1
    )
    symbols = kernels.unpack_symbols(packed, len(v), 2)
    assert set(symbols.tolist()) == {0, 3}


def test_a_magnitude_without_a_level_decodes_to_nan():
    packed = kernels.pack_symbols(torch.tensor([1, 2, 7], dtype=torch.uint8), bits=4)
    got = kernels.dequantize(
        packed, torch.ones(1), n=3, levels=(0.0, 0.5, 1.0), bits=4, bucket_size=8
    )
    assert got[:2].tolist() == [0.5, 1.0]
    assert got[2].isnan()
