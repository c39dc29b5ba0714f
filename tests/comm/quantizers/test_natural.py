import math

import pytest
import torch

from slimgrad.comm.compressor import Compressor
from slimgrad.comm.quantizers import Natural
from slimgrad.core.errors import ConfigError


def sent(quantizer, vector, step=0):
    compressor = Compressor(quantizer)
    return compressor.decompress(compressor.compress(vector, key="w", step=step))


def test_components_become_one_of_the_powers_of_two_around_them():
    v = torch.randn(2000, generator=torch.Generator().manual_seed(1))
    got = sent(Natural(bucket_size=100), v)
    below = torch.frexp(v)[1].float() - 1
    low = torch.exp2(below) * v.sign()
    assert bool(((got == low) | (got == 2 * low)).all())
    assert 0.1 < float((got == low).float().mean()) < 0.9


@pytest.mark.parametrize("exponent", [-149, -130, -126, -40, 0, 90, 127])
def test_powers_of_two_stay_exact(exponent):
    v = torch.tensor([math.ldexp(1.0, exponent), -math.ldexp(1.0, exponent), 0.0])
    assert torch.equal(sent(Natural(bucket_size=3), v), v)


def test_a_maximum_above_the_last_power_is_its_own_scale():
    v = torch.tensor([3e38, -1e38])
    got = sent(Natural(bucket_size=2), v)
    assert got[0] == v[0]
    assert bool(got.isfinite().all())


def test_eight_bits_bound_the_variance_by_an_eighth_whatever_the_bucket():
    for bucket_size in (1, 512, 2**31 - 1):
        bound = Natural(bucket_size=bucket_size).variance_bound(10**9)
        assert bound == pytest.approx(1 / 8, abs=1e-4)
    assert Natural(bits=4).variance_bound(512) > 1 / 8
    assert Natural().variance_bound(0) < 1e-4


@pytest.mark.parametrize("bits", [1, 9, "8"])
def test_bits_out_of_range_are_named(bits):
    with pytest.raises(ConfigError, match="Natural needs bits from 2 to 8"):
        Natural(bits=bits)
