"""What the bucket operations must satisfy by themselves, and the arguments they refuse."""

from __future__ import annotations

import math

import pytest
import torch

from slimgrad import kernels
from slimgrad.core.errors import ConfigError
from slimgrad.kernels import backend

FALSE_ALARM = 1e-7


@pytest.fixture(autouse=True)
def _reference():
    with backend.use_backend("reference"):
        yield


def normal(n: int, seed: int = 0) -> torch.Tensor:
    return torch.randn(n, generator=torch.Generator().manual_seed(seed))


def test_scales_are_what_they_are_called():
    v = torch.tensor([3.0, -4.0, 0.0, 0.0, 1e-45, 5e-45, 3e38, -3e38])
    expected = {
        "l2": [5.0, 0.0, None, None],
        "linf": [4.0, 0.0, 5.6e-45, 3e38],
        "power_of_two": [4.0, 0.0, 2.0**-147, 3e38],
        "mean": [3.5, 0.0, 2.0**-148, 3e38],
        "unit": [1.0, 1.0, 1.0, 1.0],
    }
    for norm, values in expected.items():
        scales = kernels.bucket_scales(v, norm=norm, bucket_size=2)
        for scale, value in zip(scales.tolist(), values, strict=True):
            if value is not None:
                assert scale == pytest.approx(value, rel=1e-6, abs=1e-45), norm


def test_a_power_of_two_is_the_least_one_not_below_the_maximum():
    for exponent in range(-149, 128):
        exact = torch.tensor([math.ldexp(1.0, exponent)])
        assert kernels.bucket_scales(exact, norm="power_of_two", bucket_size=1) == exact
        if exponent < 127:
            above = torch.nextafter(exact, torch.tensor(math.inf))
            assert kernels.bucket_scales(above, norm="power_of_two", bucket_size=1) == 2 * exact


@pytest.mark.parametrize("norm", ["l2", "linf", "power_of_two", "mean", "unit"])
@pytest.mark.parametrize("bad", [math.inf, -math.inf, math.nan])
def test_a_component_that_is_not_finite_spoils_its_bucket_alone(norm, bad):
    v = normal(30)
    v[13] = bad
    scales = kernels.bucket_scales(v, norm=norm, bucket_size=10)
    assert scales.isnan().tolist() == [False, True, False]


def test_the_mean_divides_the_last_bucket_by_its_own_length():
    scales = kernels.bucket_scales(torch.ones(11), norm="mean", bucket_size=8)
    assert scales.tolist() == [1.0, 1.0]
    v = normal(100_003)
    mean = kernels.bucket_scales(v, norm="mean", bucket_size=1 << 20)
    assert float(mean) == pytest.approx(float(v.double().abs().mean()), rel=1e-6)


def test_signs_decode_to_the_scale_with_the_sign_of_the_component():
    v = torch.cat([normal(700), torch.zeros(100), torch.full((100,), math.nan)])
    scales, packed = kernels.quantize_signs(v, norm="mean", bucket_size=100)
    back = kernels.dequantize(packed, scales, n=900, levels=(1.0,), bits=1, bucket_size=100)
    spread = scales.repeat_interleave(100)
    assert torch.equal(back[:700], spread[:700] * v[:700].sign())
    assert torch.equal(back[700:800], torch.zeros(100))
    assert bool(back[800:].isnan().all())


@pytest.mark.parametrize("bits", [1, 2, 4])
def test_rounding_without_zero_is_unbiased_and_its_variance_is_that_of_the_bins(bits):
    """Hoeffding for every component: values lie in an interval of one bin's width."""
    m = 2 ** (bits - 1)
    levels = tuple(2.0 ** (j - m) for j in range(1, m + 1))
    v = torch.cat([normal(60) * 0.3, torch.zeros(3), torch.ones(1)]).clamp(-1, 1)
    draws = 20_000
    scales, packed = kernels.quantize_no_zero(
        v.repeat(draws), levels=levels, norm="linf", bucket_size=64, bits=bits, key=3
    )
    back = kernels.dequantize(
        packed, scales, n=64 * draws, levels=levels, bits=bits, bucket_size=64
    )
    back = back.view(draws, 64).double()
    grid = torch.tensor([-levels[0], *levels], dtype=torch.float64)
    r = v.abs().double()
    j = (torch.bucketize(r, grid, right=True) - 1).clamp(max=len(grid) - 2)
    low, high = grid[j], grid[j + 1]
    width = high - low
    tolerance = width * math.sqrt(math.log(2 * 64 / FALSE_ALARM) / (2 * draws)) + 1e-4
    assert bool(((back.mean(0) - v).abs() <= tolerance).all())
    squares = (back - v).square().sum(1)
    expected = float(((high - r) * (r - low)).sum())
    slack = float(width.square().norm()) * math.sqrt(math.log(2 / FALSE_ALARM) / (2 * draws))
    assert abs(float(squares.mean()) - expected) <= slack + 1e-3 * expected


def test_zero_buckets_decode_to_zero_without_a_zero_level():
    scales, packed = kernels.quantize_no_zero(
        torch.zeros(600), levels=(0.5, 1.0), norm="l2", bucket_size=512, bits=2, key=1
    )
    assert not scales.any()
    assert not packed.any()


@pytest.mark.parametrize(
    ("settings", "text"),
    [
        ({"norm": "l3"}, "did you mean 'l2'"),
        ({"norm": "mean"}, "unknown norm 'mean'"),
        ({"bucket_size": 0}, "bucket_size must be"),
        ({"bits": 9}, "bits must be an integer from 1 to 8"),
        ({"key": -1}, "key must be"),
        ({"levels": (0.0, 1.0)}, "2 bits without zero take 2 levels"),
        ({"levels": (0.5, 0.9)}, "ascend strictly from above 0 to 1"),
        ({"levels": (1.0,)}, "2 bits without zero take 2 levels"),
        ({"levels": (1.0, 1.0)}, "ascend strictly"),
        ({"vector": torch.zeros(3, dtype=torch.float64)}, "vector must be flat"),
    ],
)
def test_arguments_out_of_range_are_named(settings, text):
    good = {
        "vector": torch.ones(3),
        "levels": (0.5, 1.0),
        "norm": "l2",
        "bucket_size": 2,
        "bits": 2,
        "key": 0,
    }
    with pytest.raises(ConfigError, match=text):
        kernels.quantize_no_zero(**{**good, **settings})


def test_scales_and_signs_refuse_unknown_norms():
    for operation in (kernels.bucket_scales, kernels.quantize_signs):
        with pytest.raises(ConfigError, match="unknown norm 'max'"):
            operation(torch.ones(3), norm="max", bucket_size=2)
