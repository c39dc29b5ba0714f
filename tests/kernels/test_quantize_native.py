"""The compiled kernels give the reference's bytes: every instruction set, size, grid and norm."""

from __future__ import annotations

import itertools
import math

import pytest
import torch

from slimgrad import kernels
from slimgrad.kernels import backend

ISAS = backend.usable_isas()
pytestmark = pytest.mark.skipif(
    not ISAS, reason="the C++ kernels were not built here, so there is nothing to compare"
)
SIZES = [0, 1, 31, 32, 33, 511, 512, 513, 4096 + 7]
FEWER_SIZES, FEWER_BUCKETS = [33, 4096 + 7], [7, 512, 8192]
BUCKETS = [1, 7, 32, 100, 512, 8192]
GRIDS = ["uniform", "exponential", "table"]


def levels_of(grid: str, m: int) -> tuple[float, ...]:
    if grid == "uniform":
        return tuple(j / m for j in range(m + 1))
    if grid == "exponential":
        return (0.0, *(2.0 ** (j - m) for j in range(1, m + 1)))
    return tuple((j / m) ** 1.7 for j in range(m + 1))


def results(v: torch.Tensor, *, grid, norm, key, serial=False, **layout) -> list[torch.Tensor]:
    """All that the kernels make of ``v``, as integers so that NaN equals NaN bit for bit."""
    scales, packed = kernels.quantize(v, grid=grid, norm=norm, key=key, serial=serial, **layout)
    plain = kernels.dequantize(packed, scales, n=len(v), serial=serial, **layout)
    start = torch.linspace(-1, 1, len(v))
    added = kernels.dequantize_add_(start.clone(), packed, scales, serial=serial, **layout)
    scaled = kernels.dequantize_add_(
        start.clone(), packed, scales, alpha=0.3, serial=serial, **layout
    )
    decoded = [
        torch.where(t.isnan(), math.nan, t).view(torch.int32) for t in (plain, added, scaled)
    ]
    return [scales.view(torch.int32), packed, *decoded]


def assert_same_bytes(v: torch.Tensor, *, threads=(1, 2), **settings) -> None:
    with backend.use_backend("reference"):
        expected = results(v, **settings)
    before = torch.get_num_threads()
    try:
        for isa, count in itertools.product(ISAS, threads):
            torch.set_num_threads(count)
            with backend.use_backend("native", isa):
                got = results(v, **settings)
            for name, a, b in zip(
                ("scales", "packed", "decoded", "added", "added times alpha"),
                got,
                expected,
                strict=True,
            ):
                assert torch.equal(a, b), f"{name} differ on {isa} with {count} threads"
    finally:
        torch.set_num_threads(before)


def normal(n: int, seed: int = 0) -> torch.Tensor:
    return torch.randn(n, generator=torch.Generator().manual_seed(seed))


@pytest.mark.parametrize("bits", range(2, 9))
@pytest.mark.parametrize("grid", GRIDS)
@pytest.mark.parametrize("norm", ["l2", "linf"])
def test_sizes_and_buckets(bits, grid, norm):
    levels = levels_of(grid, 2 ** (bits - 1) - 1)
    every = bits in (3, 4)  # a symbol in two planes, and in one
    sizes = SIZES if every else FEWER_SIZES
    for n, bucket_size in itertools.product(sizes, BUCKETS if every else FEWER_BUCKETS):
        assert_same_bytes(
            normal(n, seed=n),
            threads=(1,),
            levels=levels,
            grid=grid,
            norm=norm,
            bucket_size=bucket_size,
            bits=bits,
            key=n * 977 + bits,
        )


@pytest.mark.parametrize("bucket_size", [*BUCKETS, 800, 1536, 70_000, 131_072, 1 << 40])
@pytest.mark.parametrize(("grid", "norm"), [("uniform", "linf"), ("exponential", "l2")])
def test_several_chunks_and_threads(bucket_size, grid, norm):
    n = 200_003 if bucket_size >= 32 else 70_001
    assert_same_bytes(
        normal(n),
        levels=levels_of(grid, 7),
        grid=grid,
        norm=norm,
        bucket_size=bucket_size,
        bits=4,
        key=0xFEDCBA9876543210,
    )


@pytest.mark.parametrize("bits", range(2, 9))
def test_every_width_over_several_chunks(bits):
    assert_same_bytes(
        normal(70_000),
        levels=levels_of("table", 2 ** (bits - 1) - 1),
        grid="table",
        norm="l2",
        bucket_size=512,
        bits=bits,
        key=3,
    )


@pytest.mark.parametrize("grid", GRIDS)
def test_fewer_levels_than_the_bits_allow(grid):
    for m in (1, 2, 5, 6):
        assert_same_bytes(
            normal(1100),
            levels=levels_of(grid, m),
            grid=grid,
            norm="linf",
            bucket_size=512,
            bits=5,
            key=8,
        )


def special_vectors() -> dict[str, torch.Tensor]:
    tiny, huge = 1e-45, 3e38
    mixed = normal(1100) * torch.logspace(-44, 37, 1100)
    spoiled = normal(1100)
    spoiled[3], spoiled[600], spoiled[1099] = math.inf, math.nan, -math.inf
    one_hot = torch.zeros(1100)
    one_hot[700] = -2.0
    return {
        "zeros": torch.zeros(1100),
        "negative zeros": -torch.zeros(1100),
        "one component": one_hot,
        "smallest denormal": torch.full((1100,), tiny),
        "denormals": normal(1100) * 1e-40,
        "squares underflow": normal(1100) * 1e-25,
        "squares underflow in part": normal(1100) * 1e-19,
        "small norms": normal(1100) * 1e-32,
        "large": normal(1100) * 1e37,
        "squares overflow": normal(1100) * 1e25,
        "norm overflows": torch.full((1100,), -huge),
        "all magnitudes": mixed,
        "shuffled magnitudes": mixed[
            torch.randperm(1100, generator=torch.Generator().manual_seed(4))
        ],
        "not finite": spoiled,
        "equal": torch.full((1100,), 0.1),
        "levels": torch.tensor(levels_of("exponential", 7)).repeat(138) * 0.75,
    }


@pytest.mark.parametrize("name", special_vectors())
@pytest.mark.parametrize("norm", ["l2", "linf"])
def test_special_values(name, norm):
    for grid, bits, bucket_size in itertools.product(GRIDS, (4, 7), (32, 1024)):
        assert_same_bytes(
            special_vectors()[name],
            threads=(1,),
            levels=levels_of(grid, 2 ** (bits - 1) - 1),
            grid=grid,
            norm=norm,
            bucket_size=bucket_size,
            bits=bits,
            key=77,
        )


@pytest.mark.parametrize("bucket_size", [512, 1536])
@pytest.mark.parametrize("norm", ["l2", "linf"])
def test_ordinary_and_extraordinary_buckets_side_by_side(bucket_size, norm):
    factors = torch.tensor([1.0, 1e-35, 0.0, 1e25, math.nan, 1e-42, 1.0, 1e37, math.inf])
    v = normal(90_000) * factors.repeat(1111)[: 90_000 // 512 + 1].repeat_interleave(512)[:90_000]
    for grid in GRIDS:
        assert_same_bytes(
            v,
            levels=levels_of(grid, 7),
            grid=grid,
            norm=norm,
            bucket_size=bucket_size,
            bits=4,
            key=123,
        )


@pytest.mark.parametrize("grid", GRIDS)
def test_arbitrary_bytes_decode_alike(grid):
    """What a peer may send: any symbols, any scales."""
    generator = torch.Generator().manual_seed(6)
    scales = torch.tensor([1.0, -2.0, math.inf, math.nan, 0.0, 1e-40])
    for bits, m in itertools.product(range(2, 9), (1, 2, 100)):
        m = min(m, 2 ** (bits - 1) - 1)
        n = 5 * 512 + 99
        packed = torch.randint(
            0, 256, (kernels.packed_bytes(n, bits),), generator=generator, dtype=torch.uint8
        )
        layout = {"levels": levels_of(grid, m), "bits": bits, "bucket_size": 512}
        with backend.use_backend("reference"):
            expected = kernels.dequantize(packed, scales, n=n, **layout)
        for isa in ISAS:
            with backend.use_backend("native", isa):
                got = kernels.dequantize(packed, scales, n=n, **layout)
            assert torch.equal(got.nan_to_num(7.0), expected.nan_to_num(7.0))
            assert torch.equal(got.isnan(), expected.isnan())


def test_serial_gives_the_same_bytes():
    settings = {"grid": "exponential", "norm": "l2", "bucket_size": 512, "bits": 4, "key": 2}
    v = normal(200_003)
    levels = levels_of("exponential", 7)
    alone, shared = (results(v, levels=levels, serial=s, **settings) for s in (True, False))
    for a, b in zip(alone, shared, strict=True):
        assert torch.equal(a, b)


def test_flushed_denormals_do_not_change_the_bytes():
    v = normal(3000) * 1e-39
    settings = {"grid": "uniform", "norm": "l2", "bucket_size": 512, "bits": 4, "key": 2}
    before = results(v, levels=levels_of("uniform", 7), **settings)
    if not torch.set_flush_denormal(True):
        pytest.skip("this processor cannot flush denormals")
    try:
        after = results(v, levels=levels_of("uniform", 7), **settings)
    finally:
        torch.set_flush_denormal(False)
    assert torch.equal(before[0], after[0])
    assert torch.equal(before[1], after[1])
