"""Sums over packed vectors equal adding one after the other, bit for bit."""

from __future__ import annotations

import itertools

import pytest
import torch
from rotation_samples import normal, settings_of

from slimgrad import kernels
from slimgrad.core.errors import ConfigError
from slimgrad.kernels import PackedVector, backend

UNIFORM = tuple(j / 7 for j in range(8))


def packed_vectors(n: int, count: int = 2) -> list[PackedVector]:
    """``count`` vectors of every kind: 4-bit levels, other widths and buckets, dither, rotation."""
    made = []
    for rank in range(count):
        v = normal(n, seed=rank)
        for levels, bits, bucket in ((UNIFORM, 4, 512), ((0.0, 0.25, 0.5, 1.0), 3, 100)):
            grid = "uniform" if bits == 4 else "exponential"
            scales, packed = kernels.quantize(
                v, levels=levels, grid=grid, norm="linf", bucket_size=bucket, bits=bits, key=rank
            )
            made.append(PackedVector("none", packed, scales, levels, bits, bucket))
        for bits, bucket in ((4, 512), (6, 64)):
            steps, packed = kernels.dither(
                v, step_rms=1.0, bits=bits, bucket_size=bucket, key=rank + 7
            )
            made.append(PackedVector("dither", packed, steps, (), bits, bucket, rank + 7))
        for bits in (4, 1):
            quantizing, shared = settings_of(bits)
            scales, packed = kernels.rotate_quantize(v, **quantizing, **shared)
            made.append(
                PackedVector("rotation", packed, scales, shared["levels"], bits, 512, shared["key"])
            )
    return made


def one_by_one(vectors: list[PackedVector], n: int) -> torch.Tensor:
    out = torch.zeros(n)
    for vector in vectors:
        vector.add_to_(out, serial=True)
    return out


@pytest.mark.parametrize("n", [0, 1, 511, 512, 513, 2047, 2048, 5000, 140_001])
def test_equal_to_adding_one_by_one(n):
    vectors = packed_vectors(n)
    expected = one_by_one(vectors, n).view(torch.int32)
    before = torch.get_num_threads()
    isas = backend.usable_isas()
    try:
        for isa, threads in itertools.product(isas, (1, 2)):
            torch.set_num_threads(threads)
            with backend.use_backend("native", isa):
                got = kernels.sum_packed_(torch.full((n,), 3.0), vectors, serial=threads == 1)
            assert torch.equal(got.view(torch.int32), expected), isa
    finally:
        torch.set_num_threads(before)
    if n <= 5000:
        with backend.use_backend("reference"):
            got = kernels.sum_packed_(torch.full((n,), 3.0), vectors)
        assert torch.equal(got.view(torch.int32), expected)


@pytest.mark.parametrize("name", ["reference", "auto"])
def test_nothing_sums_to_zero_and_the_change_is_seen(name):
    weight, out = torch.ones(5, requires_grad=True), torch.ones(5)
    loss = (weight * out).sum()
    with backend.use_backend(name):
        kernels.sum_packed_(out, [])
    assert out.tolist() == [0.0] * 5
    with pytest.raises(RuntimeError, match="modified by an inplace operation"):
        loss.backward()


def changed(vector: PackedVector, **fields) -> PackedVector:
    return PackedVector(**{**vector.__dict__, **fields})


@pytest.mark.parametrize(
    ("index", "fields", "message"),
    [
        (0, {"transform": "dithre"}, "unknown transform 'dithre': did you mean 'dither'"),
        (0, {"bits": 9}, "bits must be an integer from 1 to 8, got 9"),
        (0, {"bucket_size": 0}, "bucket_size must be an integer from 1"),
        (2, {"key": -1}, r"key must be an integer in \[0, 2\*\*64\)"),
        (0, {"levels": ()}, "0 levels do not fit in 4 bits"),
        (0, {"bits": 5}, "packed must have 375 elements, got 300"),
        (0, {"bucket_size": 100}, "scales must have 6 elements, got 2"),
        (4, {"bucket_size": 256}, "at most 4 bits and buckets of 512, got 4 and 256"),
    ],
)
def test_vectors_that_do_not_agree_are_refused(index, fields, message):
    vectors = packed_vectors(600, count=1)
    vectors[index] = changed(vectors[index], **fields)
    with pytest.raises(ConfigError, match=message):
        kernels.sum_packed_(torch.zeros(600), vectors)


def test_the_sum_must_be_writable_in_place():
    with pytest.raises(ConfigError, match="out must be contiguous"):
        kernels.sum_packed_(torch.zeros(20)[::2], [])
