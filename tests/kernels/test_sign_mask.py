from __future__ import annotations

import pytest
import torch

from slimgrad import kernels
from slimgrad.core.errors import ConfigError
from slimgrad.kernels import backend
from slimgrad.kernels.backend import use_backend

SIZES = [0, 1, 7, 8, 9, 15, 16, 17, 31, 100, 70_001]


def choices():
    return ["reference", *backend.usable_isas()]


def use(choice):
    return use_backend("reference") if choice == "reference" else use_backend("native", choice)


def vector(n, dtype=torch.float32):
    values = torch.randn(n, generator=torch.Generator().manual_seed(n))
    values[::5] = 0.0
    values[3::11] = -0.0
    values[4::13] = float("nan")
    return values.to(dtype)


@pytest.mark.parametrize("choice", choices())
@pytest.mark.parametrize("n", SIZES)
def test_bits_say_what_is_above_zero_or_nan(n, choice):
    values = vector(n)
    with use(choice):
        bits = kernels.pack_positive(values)
        masked = kernels.apply_mask(values + 5, bits)
    expected = bytearray(-(-n // 8))
    for i, value in enumerate(values.tolist()):
        expected[i // 8] |= (not value <= 0) << (i % 8)
    assert bytes(bits.tolist()) == bytes(expected)
    expected = torch.where(values <= 0, 0.0, values + 5)
    assert torch.equal(masked.nan_to_num(9), expected.nan_to_num(9))


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16, torch.float64])
def test_other_dtypes(dtype):
    values = vector(100, dtype)
    masked = kernels.apply_mask(values, kernels.pack_positive(values))
    assert masked.dtype == dtype
    expected = torch.where(values <= 0, values.new_zeros(()), values)
    assert torch.equal(masked.nan_to_num(9), expected.nan_to_num(9))


def test_wrong_arguments_are_refused():
    with pytest.raises(ConfigError, match="values must be flat, floating point and on the CPU"):
        kernels.pack_positive(torch.ones(2, 2))
    with pytest.raises(ConfigError, match="values must be flat"):
        kernels.apply_mask(torch.ones(8).int(), torch.zeros(1, dtype=torch.uint8))
    with pytest.raises(ConfigError, match="9 components need 2 bytes of bits"):
        kernels.apply_mask(torch.ones(9), torch.zeros(1, dtype=torch.uint8))
