import math

import pytest
import torch

from slimgrad.comm.compressor import Compressor
from slimgrad.comm.quantizers import EFSign, Sign
from slimgrad.core.errors import ConfigError


def sent(quantizer, vector):
    compressor = Compressor(quantizer)
    frame = compressor.compress(vector, key="w", step=0)
    return compressor.decompress(frame), 8 * frame.numel() / vector.numel()


def test_one_bit_each_is_what_travels():
    v = torch.randn(1 << 16, generator=torch.Generator().manual_seed(1))
    for quantizer in (Sign(), EFSign()):
        _, bits = sent(quantizer, v)
        assert bits == 1 + (64 * 8 + 8 * (32 + 0) + 32) / 65536


def test_values():
    v = torch.randn(1000, generator=torch.Generator().manual_seed(1))
    assert torch.equal(sent(Sign(), v)[0], v.sign())
    got, _ = sent(EFSign(bucket_size=250), v)
    means = v.view(4, 250).abs().mean(1).repeat_interleave(250)
    torch.testing.assert_close(got, v.sign() * means)


def test_a_zero_counts_as_plus_unless_all_are_zero():
    assert sent(Sign(), torch.tensor([0.0, -2.0]))[0].tolist() == [1.0, -1.0]
    assert sent(EFSign(), torch.tensor([0.0, -2.0]))[0].tolist() == [1.0, -1.0]
    assert not sent(EFSign(), torch.zeros(5))[0].any()


def test_the_error_of_efsign_is_the_lemma_s():
    for v in (torch.randn(3000, generator=torch.Generator().manual_seed(2)), torch.ones(7)):
        got, _ = sent(EFSign(), v)
        error = float((got - v).double().square().sum() / v.double().square().sum())
        kept = float(v.double().abs().sum() ** 2 / (len(v) * v.double().square().sum()))
        assert error == pytest.approx(1 - kept, abs=1e-6)
    one_hot = torch.zeros(100)
    one_hot[3] = -2.0
    got, _ = sent(EFSign(bucket_size=100), one_hot)
    error = float((got - one_hot).square().sum() / 4)
    assert error == pytest.approx(EFSign(bucket_size=100).variance_bound(100), rel=1e-5)


def test_bounds():
    assert EFSign().variance_bound(0) == Sign().variance_bound(0) == 0.0
    assert EFSign().variance_bound(1) == 0.0
    assert EFSign(bucket_size=10).variance_bound(1000) == 0.9
    assert Sign().variance_bound(1) == math.inf
    assert not Sign.unbiased
    assert not EFSign.unbiased


@pytest.mark.parametrize("cls", [Sign, EFSign])
def test_a_bucket_size_out_of_range_is_named(cls):
    with pytest.raises(ConfigError, match=f"{cls.__name__} needs a bucket_size from 1"):
        cls(bucket_size=0)
