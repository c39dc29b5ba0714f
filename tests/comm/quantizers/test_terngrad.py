import math

import pytest
import torch

from slimgrad import theory
from slimgrad.comm.compressor import Compressor
from slimgrad.comm.quantizers import TernGrad
from slimgrad.core.errors import ConfigError


def sent(quantizer, vector, step=0):
    compressor = Compressor(quantizer)
    return compressor.decompress(compressor.compress(vector, key="w", step=step))


def test_values_are_minus_zero_and_plus_the_maximum_of_the_bucket():
    v = torch.randn(1000, generator=torch.Generator().manual_seed(1))
    got = sent(TernGrad(bucket_size=100), v)
    peaks = v.view(10, 100).abs().amax(1).repeat_interleave(100)
    assert bool(((got == 0) | (got == peaks * v.sign())).all())
    assert 0 < int((got != 0).sum()) < 1000


def test_the_bound_is_that_of_theory_up_to_the_resolution_of_chances():
    bound = theory.variance_bound((0, 1), 512, "linf")
    assert TernGrad().variance_bound(10**6) == pytest.approx(bound, rel=1e-3)
    assert TernGrad(clip=2.5).variance_bound(10**6) == TernGrad().variance_bound(10**6)
    assert TernGrad(clip=2.5).variance_bound(2) == 1.0
    assert TernGrad(clip=2.5).variance_bound(0) == 0.0


def test_clipping_limits_the_scale_at_c_times_the_root_mean_square():
    v = torch.ones(1024)
    v[5] = -50.0
    rms = float(v.square().mean().sqrt())
    quantized = TernGrad(bucket_size=512, clip=2.5).quantize(v, key=3)
    assert quantized.scales.tolist() == pytest.approx([2.5 * rms, 1.0])
    assert TernGrad(bucket_size=512).quantize(v, key=3).scales.tolist() == [50.0, 1.0]


@pytest.mark.parametrize("serial", [False, True])
def test_clipping_does_not_change_what_it_was_given_nor_depend_on_the_thread(serial):
    v = torch.randn(100_000, generator=torch.Generator().manual_seed(2))
    before = v.clone()
    quantized = TernGrad(clip=1.0).quantize(v, key=3, serial=serial)
    assert torch.equal(v, before)
    other = TernGrad(clip=1.0).quantize(v, key=3, serial=not serial)
    assert torch.equal(quantized.packed, other.packed)
    assert torch.equal(quantized.scales, other.scales)


def test_what_is_not_finite_is_seen_through_clipping():
    v = torch.ones(100)
    v[50] = math.inf
    got = sent(TernGrad(bucket_size=10, clip=1.0), v)
    assert got.isnan().sum() == 10
    assert sent(TernGrad(clip=1.0), torch.zeros(0)).numel() == 0
    assert not sent(TernGrad(clip=1.0), torch.zeros(9)).any()


@pytest.mark.parametrize("clip", [0, -1.0, math.inf, math.nan, "2.5", True])
def test_a_clip_out_of_range_is_named(clip):
    with pytest.raises(ConfigError, match="TernGrad needs a clip > 0 or None, got clip="):
        TernGrad(clip=clip)
