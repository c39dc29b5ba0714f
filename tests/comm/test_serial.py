import pytest
import torch

from slimgrad.comm import serial

DTYPES = [torch.float16, torch.bfloat16, torch.float32, torch.float64]


def sample(n, dtype):
    return torch.randn(n, generator=torch.Generator().manual_seed(n)).to(dtype)


@pytest.mark.parametrize("n", [0, 1, 16384, 16385, 40000])
@pytest.mark.parametrize("dtype", DTYPES)
def test_work_in_pieces_equals_torch(n, dtype):
    v, w = sample(n, dtype), sample(n, torch.float32)
    for factor in (1 / 3, 0.5, 1 / 7):
        scaled = v.clone()
        serial.multiply_(scaled, factor)
        assert torch.equal(scaled, v * factor)
    assert torch.equal(serial.copy_(torch.empty(n, dtype=dtype), w), w.to(dtype))
    assert torch.equal(serial.add_(w.clone(), v), w + v.float())
    assert torch.equal(serial.add_(w.clone(), v, 0.3), w + v.float() * 0.3)
    if dtype in (torch.float32, torch.float64):
        quotient = v.clone()
        serial.divide_(quotient, 3)
        assert torch.equal(quotient, v / 3)
        serial.zero_(quotient)
        assert torch.equal(quotient, torch.zeros(n, dtype=dtype))


def test_slices_are_changed_in_place():
    whole = torch.ones(10)
    serial.zero_(whole[3:5])
    serial.divide_(whole[5:7], 2)
    serial.multiply_(whole[7:], 3.0)
    assert whole.tolist() == [1, 1, 1, 0, 0, 0.5, 0.5, 3, 3, 3]


def test_lengths_must_agree():
    with pytest.raises(ValueError, match="zip"):
        serial.copy_(torch.zeros(16384), torch.zeros(16385))


@pytest.mark.parametrize("n", [1, 65536, 65537, 140_000])
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_what_is_not_finite_is_found_everywhere(n, dtype):
    v = sample(n, dtype)
    assert serial.all_finite(v)
    assert serial.all_finite(v[:0])
    for place in {0, n // 2, n - 1}:
        for bad in (torch.inf, -torch.inf, torch.nan):
            w = v.clone()
            w[place] = bad
            assert not serial.all_finite(w)
