"""Dither kernels: the reference by itself, the compiled ones against its bytes, wrong arguments."""

from __future__ import annotations

import itertools
import math

import pytest
import torch

from slimgrad import kernels
from slimgrad.core.errors import ConfigError
from slimgrad.kernels import backend
from slimgrad.kernels.reference import dither as reference

ISAS = backend.usable_isas()
needs_native = pytest.mark.skipif(
    not ISAS, reason="the C++ kernels were not built here, so there is nothing to compare"
)
SIZES = [0, 1, 31, 32, 33, 511, 512, 513, 4096 + 7]
BUCKETS = [1, 7, 100, 512, 1536]


def normal(n: int, seed: int = 0) -> torch.Tensor:
    return torch.randn(n, generator=torch.Generator().manual_seed(seed))


def results(v: torch.Tensor, *, step_rms=1.0, serial=False, **layout) -> list[torch.Tensor]:
    """All that the kernels make of ``v``, as integers so that NaN equals NaN bit for bit."""
    steps, packed = kernels.dither(v, step_rms=step_rms, serial=serial, **layout)
    plain = kernels.undither(packed, steps, n=len(v), serial=serial, **layout)
    start = torch.linspace(-1, 1, len(v))
    added = kernels.undither_add_(start.clone(), packed, steps, serial=serial, **layout)
    scaled = kernels.undither_add_(start.clone(), packed, steps, alpha=0.3, serial=serial, **layout)
    decoded = [
        torch.where(t.isnan(), math.nan, t).view(torch.int32) for t in (plain, added, scaled)
    ]
    return [steps.view(torch.int32), packed, *decoded]


def assert_same_bytes(v: torch.Tensor, *, threads=(1,), **settings) -> None:
    with backend.use_backend("reference"):
        expected = results(v, **settings)
    before = torch.get_num_threads()
    try:
        for isa, count in itertools.product(ISAS, threads):
            torch.set_num_threads(count)
            with backend.use_backend("native", isa):
                got = results(v, **settings)
            names = ("steps", "packed", "decoded", "added", "added times alpha")
            for name, a, b in zip(names, got, expected, strict=True):
                assert torch.equal(a, b), f"{name} differ on {isa} with {count} threads"
    finally:
        torch.set_num_threads(before)


@needs_native
@pytest.mark.parametrize("bits", range(2, 9))
def test_sizes_and_buckets(bits):
    every = bits in (3, 4)
    sizes = SIZES if every else [33, 4096 + 7]
    for n, bucket_size in itertools.product(sizes, BUCKETS if every else [7, 512]):
        assert_same_bytes(normal(n, seed=n), bucket_size=bucket_size, bits=bits, key=n * 977 + bits)


@needs_native
@pytest.mark.parametrize("bucket_size", [512, 800, 8192, 131_072, 1 << 40])
def test_several_chunks_and_threads(bucket_size):
    v = normal(140_003)
    settings = {"bucket_size": bucket_size, "bits": 4, "key": 0xFEDCBA9876543210}
    assert_same_bytes(v, threads=(1, 2), **settings)
    alone, shared = (results(v, serial=s, **settings) for s in (True, False))
    assert all(torch.equal(a, b) for a, b in zip(alone, shared, strict=True))


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
        "denormals": normal(1100) * 1e-40,
        "small steps": normal(1100) * 1e-32,
        "large": normal(1100) * 1e37,
        "norm overflows": torch.full((1100,), -3e38),
        "largest": torch.full((1100,), torch.finfo(torch.float32).max),
        "all magnitudes": normal(1100) * torch.logspace(-44, 37, 1100),
        "not finite": spoiled,
        "equal": torch.full((1100,), 0.1),
        "halves": torch.arange(1100).remainder(15) / 2 - 3.5,
    }


@needs_native
@pytest.mark.parametrize("name", special_vectors())
def test_special_values(name):
    for step_rms, bits, bucket_size in itertools.product((0.01, 1.0, 1e30), (2, 4, 8), (32, 512)):
        assert_same_bytes(
            special_vectors()[name],
            step_rms=step_rms,
            bits=bits,
            bucket_size=bucket_size,
            key=77,
        )


@pytest.mark.parametrize("name", special_vectors())
@pytest.mark.parametrize("bits", [2, 4, 8])
def test_finite_buckets_err_by_half_a_step_and_others_are_nan(name, bits):
    v = special_vectors()[name]
    with backend.use_backend("reference"):
        steps, packed = kernels.dither(v, step_rms=0.25, bits=bits, bucket_size=100, key=5)
        got = kernels.undither(packed, steps, n=1100, bits=bits, bucket_size=100, key=5)
    finite = v.isfinite().view(-1, 100).all(1)
    assert torch.equal(steps.isfinite(), finite)
    assert torch.equal(got.isfinite(), finite.repeat_interleave(100))
    zero = (v.view(-1, 100) == 0).all(1)
    assert torch.equal(steps == 0, zero)
    assert (kernels.unpack_symbols(packed, 1100, bits).view(-1, 100)[zero | ~finite] == 0).all()
    error = (got.double() - v.double()).view(-1, 100)[finite].abs()
    allowed = steps[finite].double()[:, None] * (0.5 + 1e-5) + 1e-6 * v.abs().view(-1, 100)[finite]
    assert (error <= allowed).all()


def test_steps_are_a_multiple_of_the_rms_or_leave_the_largest_its_integer():
    v = normal(1050)
    v[600] = 40.0
    steps = reference.bucket_steps(v, step_rms=0.5, bits=4, bucket_size=100).double()
    for step, bucket in zip(steps, v.double().split(100), strict=True):
        rms, largest = bucket.square().mean().sqrt(), bucket.abs().max()
        assert step == pytest.approx(float(max(0.5 * rms, largest / 7)), rel=2e-6)
        assert step * 7 >= largest


def test_there_is_no_negative_zero_symbol():
    _, packed = kernels.dither(normal(5000), step_rms=2.0, bits=3, bucket_size=512, key=1)
    symbols = kernels.unpack_symbols(packed, 5000, 3)
    assert set(symbols.tolist()) <= {0, 1, 2, 3, 5, 6, 7}
    assert 5 in symbols


@needs_native
def test_arbitrary_bytes_decode_alike():
    """What a peer may send: any symbols, any steps."""
    generator = torch.Generator().manual_seed(6)
    steps = torch.tensor([1.0, -2.0, 3e38, math.nan, 0.0, 1e-40])
    for bits in range(2, 9):
        n = 5 * 512 + 99
        size = (kernels.packed_bytes(n, bits),)
        packed = torch.randint(0, 256, size, generator=generator, dtype=torch.uint8)
        layout = {"n": n, "bits": bits, "bucket_size": 512, "key": 3}
        with backend.use_backend("reference"):
            expected = kernels.undither(packed, steps, **layout)
        for isa in ISAS:
            with backend.use_backend("native", isa):
                got = kernels.undither(packed, steps, **layout)
            assert torch.equal(got.nan_to_num(7.0), expected.nan_to_num(7.0))
            assert torch.equal(got.isnan(), expected.isnan())
        assert expected[: 3 * 512].isfinite().all()


def test_flushed_denormals_do_not_change_the_bytes():
    v = normal(3000) * 1e-39
    before = results(v, bucket_size=512, bits=4, key=2)
    if not torch.set_flush_denormal(True):
        pytest.skip("this processor cannot flush denormals")
    try:
        after = results(v, bucket_size=512, bits=4, key=2)
    finally:
        torch.set_flush_denormal(False)
    assert torch.equal(before[0], after[0])
    assert torch.equal(before[1], after[1])


SETTINGS = {"bits": 4, "bucket_size": 4, "key": 0}


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"bits": 1}, "bits must be an integer from 2 to 8, got 1"),
        ({"bucket_size": 0}, "bucket_size must be an integer from 1"),
        ({"key": -1}, r"key must be an integer in \[0, 2\*\*64\), got -1"),
        ({"step_rms": 0.0}, "step_rms must be above 0 and finite in float32, got 0.0"),
        ({"step_rms": math.nan}, "step_rms must be above 0 and finite in float32, got nan"),
        ({"step_rms": 1e39}, "step_rms must be above 0 and finite in float32"),
    ],
)
def test_dither_refuses(change, message):
    with pytest.raises(ConfigError, match=message):
        kernels.dither(torch.ones(8), **{"step_rms": 1.0, **SETTINGS, **change})
    with pytest.raises(ConfigError, match=r"vector must be flat, torch\.float32"):
        kernels.dither(torch.ones(8).double(), step_rms=1.0, **SETTINGS)


@pytest.mark.parametrize("change", [{"bits": 1}, {"bucket_size": 0}, {"key": 1 << 64}])
def test_undither_refuses(change):
    packed, steps = torch.zeros(4, dtype=torch.uint8), torch.ones(2)
    with pytest.raises(ConfigError, match=next(iter(change))):
        kernels.undither(packed, steps, n=8, **{**SETTINGS, **change})
    with pytest.raises(ConfigError, match="packed must have 5 elements, got 4"):
        kernels.undither(packed, steps, n=9, **SETTINGS)
    with pytest.raises(ConfigError, match="steps must have 2 elements, got 1"):
        kernels.undither_add_(torch.zeros(8), packed, steps[:1], **SETTINGS)
    with pytest.raises(ConfigError, match="alpha must be finite"):
        kernels.undither_add_(torch.zeros(8), packed, steps, alpha=math.inf, **SETTINGS)


@pytest.mark.parametrize("name", ["reference", "auto"])
def test_layouts_and_autograd(name):
    v = torch.arange(40.0)
    with backend.use_backend(name):
        steps, packed = kernels.dither(v[::2].clone(), step_rms=1.0, **SETTINGS)
        strided = kernels.dither(v[::2].requires_grad_(), step_rms=1.0, **SETTINGS)
        assert torch.equal(strided[1], packed)
        weight, out = torch.ones(20, requires_grad=True), torch.ones(20)
        loss = (weight * out).sum()
        kernels.undither_add_(out, packed, steps, **SETTINGS)
        with torch.inference_mode():
            total = kernels.undither_add_(torch.ones(20), packed, steps, **SETTINGS)
    assert torch.equal(total, out)
    with pytest.raises(RuntimeError, match="modified by an inplace operation"):
        loss.backward()
