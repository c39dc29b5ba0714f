"""The compiled bucket kernels give the reference's bytes: every instruction set, size and norm."""

from __future__ import annotations

import itertools
import math

import pytest
import torch

from slimgrad import kernels
from slimgrad.kernels import backend
from slimgrad.kernels.buckets import SCALES

ISAS = backend.usable_isas()
pytestmark = pytest.mark.skipif(
    not ISAS, reason="the C++ kernels were not built here, so there is nothing to compare"
)
SIZES = [0, 1, 31, 33, 511, 512, 513, 4096 + 7]
BUCKETS = [1, 7, 100, 512, 8192]


def normal(n: int, seed: int = 0) -> torch.Tensor:
    return torch.randn(n, generator=torch.Generator().manual_seed(seed))


def special_vectors() -> dict[str, torch.Tensor]:
    spoiled = normal(1100)
    spoiled[3], spoiled[600], spoiled[1099] = math.inf, math.nan, -math.inf
    one_hot = torch.zeros(1100)
    one_hot[700] = -2.0
    return {
        "zeros": torch.zeros(1100),
        "negative zeros": -torch.zeros(1100),
        "one component": one_hot,
        "smallest denormal": torch.full((1100,), 1e-45),
        "three denormals": torch.full((1100,), 4e-45),
        "denormals": normal(1100) * 1e-40,
        "powers of two": torch.logspace(-140, 127, 1100, base=2).exp2().clamp(max=3e38),
        "large": normal(1100) * 1e37,
        "sums overflow": normal(1100).sign() * 3e38,
        "not finite": spoiled,
        "wide range": normal(1100) * torch.logspace(-44, 37, 1100),
    }


def as_integers(t: torch.Tensor) -> torch.Tensor:
    return t if t.dtype == torch.uint8 else torch.where(t.isnan(), math.nan, t).view(torch.int32)


def assert_same_bytes(function, *, threads=(1, 2)) -> None:
    """``function(serial)`` gives tensors; compares them with the reference's."""
    with backend.use_backend("reference"):
        expected = [as_integers(t) for t in function(False)]
    before = torch.get_num_threads()
    try:
        for isa, count, serial in itertools.product(ISAS, threads, (False, True)):
            torch.set_num_threads(count)
            with backend.use_backend("native", isa):
                got = [as_integers(t) for t in function(serial)]
            for a, b in zip(got, expected, strict=True):
                assert torch.equal(a, b), f"{isa} with {count} threads, serial={serial}"
    finally:
        torch.set_num_threads(before)


def levels_without_zero(bits: int) -> tuple[float, ...]:
    m = 2 ** (bits - 1)
    return tuple((j / m) ** 1.7 for j in range(1, m + 1))


def scales_of(v, norm, bucket_size):
    return lambda serial: [
        kernels.bucket_scales(v, norm=norm, bucket_size=bucket_size, serial=serial)
    ]


def signs_of(v, norm, bucket_size):
    return lambda serial: kernels.quantize_signs(
        v, norm=norm, bucket_size=bucket_size, serial=serial
    )


def rounded(v, norm, bucket_size, bits, key=5):
    return lambda serial: kernels.quantize_no_zero(
        v,
        levels=levels_without_zero(bits),
        norm=norm,
        bucket_size=bucket_size,
        bits=bits,
        key=key,
        serial=serial,
    )


@pytest.mark.parametrize("norm", SCALES)
def test_scales_and_signs_of_every_size(norm):
    for n, bucket_size in itertools.product(SIZES, BUCKETS):
        assert_same_bytes(scales_of(normal(n, n), norm, bucket_size), threads=(1,))
        assert_same_bytes(signs_of(normal(n, n), norm, bucket_size), threads=(1,))


@pytest.mark.parametrize("bits", range(1, 9))
@pytest.mark.parametrize("norm", SCALES[:3])
def test_rounding_without_zero_of_every_width(bits, norm):
    for n, bucket_size in itertools.product([1, 513, 4096 + 7], [7, 512]):
        assert_same_bytes(rounded(normal(n, n), norm, bucket_size, bits), threads=(1,))


@pytest.mark.parametrize("name", special_vectors())
def test_special_values(name):
    v = special_vectors()[name]
    for bucket_size in (1, 100, 512, 4096):
        for norm in SCALES:
            assert_same_bytes(scales_of(v, norm, bucket_size), threads=(1,))
        for norm in ("mean", "unit"):
            assert_same_bytes(signs_of(v, norm, bucket_size), threads=(1,))
        for norm in SCALES[:3]:
            assert_same_bytes(rounded(v, norm, bucket_size, 4), threads=(1,))


@pytest.mark.parametrize("bucket_size", [3, 512, 800, 70_000, 1 << 40])
def test_several_chunks_and_threads(bucket_size):
    v = normal(140_003)
    assert_same_bytes(scales_of(v, "mean", bucket_size))
    assert_same_bytes(signs_of(v, "mean", bucket_size))
    assert_same_bytes(rounded(v, "l2", bucket_size, 4, key=2**64 - 1))


@pytest.mark.parametrize("bits", [4, 8])
def test_rounding_to_levels_of_a_power_of_two(bits):
    m = 2 ** (bits - 1) - 1
    levels = (0.0, *(2.0 ** (j - m) for j in range(1, m + 1)))

    def rounding(v, bucket_size):
        return lambda serial: kernels.quantize(
            v,
            levels=levels,
            grid="exponential",
            norm="power_of_two",
            bucket_size=bucket_size,
            bits=bits,
            key=9,
            serial=serial,
        )

    for v in (*special_vectors().values(), normal(70_001)):
        assert_same_bytes(rounding(v, 512))
    assert_same_bytes(rounding(normal(5000), 100_000))


def test_strided_vectors():
    v = normal(2000)[::2]
    assert_same_bytes(signs_of(v, "mean", 512), threads=(1,))
    assert_same_bytes(rounded(v, "linf", 512, 3), threads=(1,))
