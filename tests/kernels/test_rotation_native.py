"""The compiled rotating kernels give the reference's bytes on every instruction set."""

from __future__ import annotations

import itertools
import math

import pytest
import torch
from rotation_samples import normal, settings_of, special_vectors

from slimgrad import kernels
from slimgrad.kernels import backend

ISAS = backend.usable_isas()
pytestmark = pytest.mark.skipif(
    not ISAS, reason="the C++ kernels were not built here, so there is nothing to compare"
)


def decodings(packed, scales, n, shared, serial=False) -> list[torch.Tensor]:
    start = torch.linspace(-1, 1, n)
    return [
        kernels.rotate_dequantize(packed, scales, n=n, serial=serial, **shared),
        kernels.rotate_dequantize_add_(start.clone(), packed, scales, serial=serial, **shared),
        kernels.rotate_dequantize_add_(
            start.clone(), packed, scales, alpha=0.3, serial=serial, **shared
        ),
    ]


def as_integers(values: torch.Tensor) -> torch.Tensor:
    return torch.where(values.isnan(), math.nan, values).view(torch.int32)


def results(v, quantizing, shared, serial=False) -> list[torch.Tensor]:
    """All that the kernels make of ``v``, as integers so that NaN equals NaN bit for bit."""
    scales, packed = kernels.rotate_quantize(v, serial=serial, **quantizing, **shared)
    decoded = decodings(packed, scales, len(v), shared, serial)
    return [scales.view(torch.int32), packed, *map(as_integers, decoded)]


def assert_same_bytes(v, bits, *, threads=(1,), spread=None) -> None:
    quantizing, shared = settings_of(bits, spread)
    with backend.use_backend("reference"):
        expected = results(v, quantizing, shared)
    before = torch.get_num_threads()
    try:
        for isa, count in itertools.product(ISAS, threads):
            torch.set_num_threads(count)
            with backend.use_backend("native", isa):
                got = results(v, quantizing, shared)
            names = ("scales", "packed", "decoded", "added", "added times alpha")
            for name, a, b in zip(names, got, expected, strict=True):
                assert torch.equal(a, b), f"{name} differ on {isa} with {count} threads"
    finally:
        torch.set_num_threads(before)


@pytest.mark.parametrize("bits", [1, 2, 3, 4])
@pytest.mark.parametrize("n", [0, 1, 511, 512, 513, 1024, 4096 + 7])
def test_sizes(bits, n):
    assert_same_bytes(normal(n, seed=n), bits)


@pytest.mark.parametrize("bits", [3, 4])
@pytest.mark.parametrize("spread", [0.0, 1.0])
def test_several_chunks_and_threads(bits, spread):
    assert_same_bytes(normal(150_003), bits, threads=(1, 2), spread=spread)


@pytest.mark.parametrize("name", special_vectors())
@pytest.mark.parametrize("bits", [1, 2, 3, 4])
def test_special_values(name, bits):
    assert_same_bytes(special_vectors()[name], bits)


@pytest.mark.parametrize("bits", [1, 2, 3, 4])
def test_arbitrary_bytes_decode_alike(bits):
    """What a peer may send: any symbols, any scales."""
    generator = torch.Generator().manual_seed(6)
    scales = torch.tensor([1.0, -2.0, math.inf, math.nan, 0.0, 1e-40, 3e38])
    n = 7 * 512 - 100
    packed = torch.randint(0, 256, (7 * 64 * bits,), generator=generator, dtype=torch.uint8)
    _, shared = settings_of(bits)
    with backend.use_backend("reference"):
        expected = decodings(packed, scales, n, shared)
    for isa in ISAS:
        with backend.use_backend("native", isa):
            got = decodings(packed, scales, n, shared)
        for a, b in zip(got, expected, strict=True):
            assert torch.equal(as_integers(a), as_integers(b)), isa


def test_serial_gives_the_same_bytes():
    quantizing, shared = settings_of(4)
    v = normal(200_003)
    alone, together = (results(v, quantizing, shared, serial) for serial in (True, False))
    for a, b in zip(alone, together, strict=True):
        assert torch.equal(a, b)


def test_flushed_denormals_do_not_change_the_bytes():
    quantizing, shared = settings_of(4)
    v = normal(3000) * 1e-39
    before = results(v, quantizing, shared)
    if not torch.set_flush_denormal(True):
        pytest.skip("this processor cannot flush denormals")
    try:
        after = kernels.rotate_quantize(v, **quantizing, **shared)
    finally:
        torch.set_flush_denormal(False)
    assert torch.equal(before[0], after[0].view(torch.int32))
    assert torch.equal(before[1], after[1])


def test_results_that_leave_the_caches_are_written_alike():
    n = (1 << 20) + 77
    quantizing, shared = settings_of(4)
    scales, packed = kernels.rotate_quantize(normal(n), **quantizing, **shared)
    for isa in ISAS:
        with backend.use_backend("native", isa):
            expected = kernels.rotate_dequantize_add_(torch.zeros(n), packed, scales, **shared)
            room = torch.empty(n + 1)
            for out in (torch.empty(n), room[1:]):
                got = kernels.rotate_dequantize(packed, scales, n=n, out=out, **shared)
                assert got.data_ptr() == out.data_ptr()
                assert torch.equal(out, expected)
