"""What the reference of the rotating kernels must satisfy by itself."""

from __future__ import annotations

import math

import pytest
import torch
from rotation_samples import normal, settings_of, special_vectors

from slimgrad import kernels
from slimgrad.kernels.backend import use_backend
from slimgrad.kernels.reference.rotation import hadamard, signs


@pytest.fixture(autouse=True)
def plain_torch():
    with use_backend("reference"):
        yield


def test_hadamard_is_the_matrix_of_plus_and_minus_one():
    matrix = hadamard(torch.eye(512))
    assert torch.equal(matrix.abs(), torch.ones(512, 512))
    assert torch.equal(matrix, matrix.T)
    assert torch.equal(matrix @ matrix, 512 * torch.eye(512))


def test_signs_are_fair_and_differ_by_turn_block_and_key():
    many = signs(200, key=9, turn=0)
    # Sums of fair signs: beyond 6 standard deviations with probability below 1e-8 each.
    assert abs(float(many.sum())) < 6 * math.sqrt(200 * 512)
    for other in (signs(200, key=9, turn=1), signs(200, key=10, turn=0), many.roll(1, 0)):
        assert abs(float((many * other).sum())) < 6 * math.sqrt(200 * 512)
    assert torch.equal(many[:7], signs(7, key=9, turn=0))


@pytest.mark.parametrize("bits", [1, 2, 3, 4])
@pytest.mark.parametrize("spread", [0.0, 1.0])
def test_every_component_goes_to_the_nearest_level(bits, spread):
    quantizing, shared = settings_of(bits, spread)
    v = normal(5 * 512)
    _, packed = kernels.rotate_quantize(v, **quantizing, **shared)
    rotated = v.view(5, 512)
    for turn in (0, 1)[: 1 if spread == 1.0 else 2]:
        rotated = hadamard(rotated.double() * signs(5, shared["key"], turn)) / math.sqrt(512)
    rotated = rotated / rotated.square().mean(1, keepdim=True).sqrt()
    levels = torch.tensor(shared["levels"]).double() * quantizing["unit"]
    symbols = kernels.unpack_symbols(packed, 5 * 512, bits).long().view(5, 512)
    taken = (rotated.abs() - levels[symbols & (2 ** (bits - 1) - 1)]).abs()
    best = (rotated.abs()[..., None] - levels).abs().amin(2)
    assert float((taken - best).max()) < 1e-5
    assert torch.equal(symbols >> (bits - 1), (rotated < 0).long())


@pytest.mark.parametrize("bits", [1, 2, 3, 4])
def test_the_projection_on_the_vector_is_kept(bits):
    quantizing, shared = settings_of(bits)
    for name, v in special_vectors().items():
        scales, packed = kernels.rotate_quantize(v, **quantizing, **shared)
        decoded = kernels.rotate_dequantize(packed, scales, n=len(v), **shared)
        blocks = zip(v.split(512), decoded.split(512), scales, strict=True)
        for block, result, scale in blocks:
            if not block.isfinite().all():
                assert scale.isnan()
                assert result.isnan().all()
                continue
            assert result.isfinite().all(), name
            exact = float(block.double().square().sum())
            # Below the normal range, and where the largest float32 is reached, it is not kept.
            if 1e-60 < exact < 1e74:
                kept = float(block.double() @ result.double())
                assert kept == pytest.approx(exact, rel=1e-5), name


def test_the_lowest_bit_of_the_scale_tells_of_a_second_rotation():
    quantizing, shared = settings_of(4)
    even, uneven = torch.ones(512), torch.eye(512)[3]
    scales, _ = kernels.rotate_quantize(torch.cat([even, uneven]), **quantizing, **shared)
    assert (scales.view(torch.int32) & 1).tolist() == [0, 1]


def test_symbols_of_blocks_without_scale_are_zero():
    quantizing, shared = settings_of(4)
    v = torch.cat([torch.zeros(512), torch.full((512,), math.nan), torch.eye(512)[0] * 1e-45])
    scales, packed = kernels.rotate_quantize(v, **quantizing, **shared)
    assert not packed[:512].any()
    assert scales[0] == 0
    assert math.isnan(scales[1])
    # The factor of the smallest denormal is below it.
    assert (scales[2] == 0) == (not packed[512:].any())
