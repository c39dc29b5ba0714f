"""The Triton kernels give the reference's bytes; test_triton.py runs this in the interpreter."""

from __future__ import annotations

import itertools
import math

import pytest
import torch

from slimgrad.core.errors import ConfigError
from slimgrad.kernels.reference import packing as reference_packing
from slimgrad.kernels.reference import quantize as reference
from slimgrad.kernels.triton import dequantize, packing, quantize, topk

SIZES = [0, 1, 511, 512, 513, 2048 + 33]


def normal(n: int, seed: int = 0) -> torch.Tensor:
    return torch.randn(n, generator=torch.Generator().manual_seed(seed))


def levels_of(grid: str, bits: int) -> torch.Tensor:
    m = 2 ** (bits - 1) - 1
    if grid == "uniform":
        return torch.tensor([j / m for j in range(m + 1)])
    if grid == "exponential":
        return torch.tensor([0.0, *(2.0 ** (j - m) for j in range(1, m + 1))])
    return torch.tensor([(j / m) ** 1.7 for j in range(m + 1)])


def assert_same_bytes(v, *, grid="uniform", norm="l2", bucket_size=512, bits=4, key=7):
    settings = {"grid": grid, "norm": norm, "bucket_size": bucket_size, "bits": bits, "key": key}
    levels = levels_of(grid, bits)
    scales, packed = quantize.quantize(v, levels=levels, **settings)
    expected = reference.quantize(v, levels=levels, **settings)
    assert torch.equal(scales.nan_to_num(-1.0), expected[0].nan_to_num(-1.0))
    assert torch.equal(packed, expected[1])


@pytest.mark.parametrize("bits", [2, 3, 4, 7, 8])
@pytest.mark.parametrize("grid", ["uniform", "exponential", "table"])
def test_quantize_of_every_grid_and_width(grid, bits):
    if (grid, bits) == ("exponential", 8):
        assert_same_bytes(normal(600), grid=grid, bits=bits, norm="linf")
    for norm in ("l2", "linf"):
        assert_same_bytes(normal(700), grid=grid, norm=norm, bits=bits)


def test_quantize_of_every_size_and_bucket():
    for n, bucket_size in [*itertools.product(SIZES, (512, 8192)), (530, 7), (2048 + 33, 100)]:
        assert_same_bytes(normal(n, n), bucket_size=bucket_size, key=2**64 - 1 - n)


def test_the_random_stream_goes_on_over_chunks():
    assert_same_bytes(normal(65536 + 700), bucket_size=1 << 20, norm="linf")


def special_vectors():
    spoiled = normal(1100)
    spoiled[3], spoiled[600], spoiled[1099] = math.inf, math.nan, -math.inf
    return {
        "zeros": -torch.zeros(1100),
        "denormals": normal(1100) * 1e-40,
        "squares underflow": normal(1100) * 1e-25,
        "small norms": normal(1100) * 1e-32,
        "squares overflow": normal(1100) * 1e25,
        "largest": normal(1100).sign() * 3.4e38,
        "not finite": spoiled,
        "wide range": normal(1100) * torch.logspace(-44, 37, 1100),
    }


@pytest.mark.parametrize("name", special_vectors())
def test_special_values(name):
    for norm in ("l2", "linf"):
        assert_same_bytes(special_vectors()[name], grid="exponential", norm=norm)
    assert_same_bytes(special_vectors()[name], grid="uniform", bucket_size=100)


@pytest.mark.parametrize("bits", range(1, 9))
def test_symbols_are_packed_and_unpacked(bits):
    for n in SIZES:
        generator = torch.Generator().manual_seed(n)
        symbols = torch.randint(0, 1 << bits, (n,), generator=generator, dtype=torch.uint8)
        packed = packing.pack_symbols(symbols, bits)
        assert torch.equal(packed, reference_packing.pack_symbols(symbols, bits))
        assert torch.equal(packing.unpack_symbols(packed, n, bits), symbols)


@pytest.mark.parametrize("bits", [1, 2, 3, 4, 5, 8])
def test_packed_vectors_are_added(bits):
    levels = torch.tensor([1.0]) if bits == 1 else levels_of("table", bits)
    for n, alpha in itertools.product(SIZES, (1.0, 0.3)):
        generator = torch.Generator().manual_seed(n)
        symbols = torch.randint(0, 1 << bits, (n,), generator=generator, dtype=torch.uint8)
        packed = reference_packing.pack_symbols(symbols, bits)
        scales = normal(-(-n // 100), 5).abs()
        layout = {"levels": levels, "bits": bits, "bucket_size": 100, "alpha": alpha}
        out = dequantize.dequantize_add_(normal(n), packed, scales, **layout)
        expected = reference.dequantize_add_(normal(n), packed, scales, **layout)
        assert torch.equal(out.nan_to_num(-9.0), expected.nan_to_num(-9.0))


@pytest.mark.parametrize("n", [1, 1023, 1024, 5000])
def test_the_largest_magnitudes_are_selected(n):
    ties = (normal(n) * 2).round()
    spoiled = normal(n)
    spoiled[n // 2], spoiled[n // 3] = math.nan, -math.inf
    for v in (normal(n), ties, torch.zeros(n), spoiled, normal(n) * 1e-40):
        magnitude = v.view(torch.int32) & 0x7FFFFFFF
        order = torch.sort(magnitude, descending=True, stable=True).indices
        for k in {0, 1, n // 100, n // 2, n}:
            assert torch.equal(topk.topk_places(v, k), order[:k].sort().values)


def test_what_is_not_allowed_is_named():
    v = normal(8)
    levels = levels_of("uniform", 4)
    good = {"levels": levels, "grid": "uniform", "norm": "l2", "bucket_size": 4, "bits": 4}
    with pytest.raises(ConfigError, match="unknown grid 'unifrm'"):
        quantize.quantize(v, key=0, **{**good, "grid": "unifrm"})
    with pytest.raises(ConfigError, match="unknown norm 'l1'"):
        quantize.quantize(v, key=0, **{**good, "norm": "l1"})
    with pytest.raises(ConfigError, match=r"vector must be flat, contiguous and torch\.float32"):
        quantize.quantize(v[::2], key=0, **good)
    with pytest.raises(ConfigError, match="k must be an integer from 0 to 8, got 9"):
        topk.topk_places(v, 9)
