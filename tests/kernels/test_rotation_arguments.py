"""Wrong arguments of the rotating kernels are refused in one line."""

from __future__ import annotations

import pytest
import torch
from rotation_samples import normal, settings_of

from slimgrad import kernels
from slimgrad.core.errors import ConfigError
from slimgrad.kernels import backend

QUANTIZING, SHARED = settings_of(2)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"bits": 0}, "bits must be an integer from 1 to 8, got 0"),
        ({"bits": 5}, "rotated symbols have 1 to 4 bits, got 5"),
        ({"bits": 3}, "rotated symbols of 3 bits need 4 levels, got 2"),
        ({"levels": (0.0, 1.0)}, "levels must ascend strictly from above 0 to 1"),
        ({"levels": (0.5, 0.9)}, "levels must ascend strictly from above 0 to 1"),
        ({"levels": (1.0, 1.0)}, "levels must ascend strictly from above 0 to 1"),
        ({"unit": 0.0}, "unit must lie between 0 and 4.0, got 0.0"),
        ({"unit": 4.0}, "unit must lie between 0 and 4.0, got 4.0"),
        ({"spread": 1.5}, "spread must be from 0 to 1, got 1.5"),
        ({"key": -1}, r"key must be an integer in \[0, 2\*\*64\), got -1"),
        (
            {"bits": 3, "levels": (0.1, 0.12, 0.14, 1.0)},
            "two boundaries within a quarter of a standard deviation",
        ),
    ],
)
def test_quantize_refuses(change, message):
    with pytest.raises(ConfigError, match=message):
        kernels.rotate_quantize(torch.ones(8), **{**QUANTIZING, **SHARED, **change})


def test_vectors_of_another_kind_are_refused():
    with pytest.raises(ConfigError, match=r"vector must be flat, torch\.float32"):
        kernels.rotate_quantize(torch.ones(2, 4), **QUANTIZING, **SHARED)


def test_sizes_that_do_not_agree_are_refused():
    scales, packed = kernels.rotate_quantize(torch.ones(600), **QUANTIZING, **SHARED)
    with pytest.raises(ConfigError, match="packed must have 128 elements, got 256"):
        kernels.rotate_dequantize(packed, scales, n=512, **SHARED)
    with pytest.raises(ConfigError, match="scales must have 2 elements, got 1"):
        kernels.rotate_dequantize(packed, scales[:1], n=600, **SHARED)
    with pytest.raises(ConfigError, match="n must be an integer >= 0"):
        kernels.rotate_dequantize(packed, scales, n=-1, **SHARED)
    with pytest.raises(ConfigError, match="packed must have 384 elements, got 256"):
        kernels.rotate_dequantize_add_(torch.zeros(1025), packed, scales, **SHARED)
    with pytest.raises(ConfigError, match="out must have 600 elements, got 599"):
        kernels.rotate_dequantize(packed, scales, n=600, out=torch.zeros(599), **SHARED)
    with pytest.raises(ConfigError, match="out must be contiguous"):
        kernels.rotate_dequantize(packed, scales, n=600, out=torch.zeros(1200)[::2], **SHARED)
    with pytest.raises(ConfigError, match="alpha must be finite"):
        kernels.rotate_dequantize_add_(
            torch.zeros(600), packed, scales, alpha=float("nan"), **SHARED
        )


@pytest.mark.parametrize("name", ["reference", "auto"])
def test_strided_input_is_copied_and_the_change_in_place_is_seen(name):
    v = normal(1200)
    with backend.use_backend(name):
        scales, packed = kernels.rotate_quantize(v[::2].clone(), **QUANTIZING, **SHARED)
        strided = kernels.rotate_quantize(v[::2], **QUANTIZING, **SHARED)
        assert torch.equal(strided[0], scales)
        assert torch.equal(strided[1], packed)
        weight, out = torch.ones(600, requires_grad=True), torch.ones(600)
        loss = (weight * out).sum()
        kernels.rotate_dequantize_add_(out, packed, scales, **SHARED)
        decoded = kernels.rotate_dequantize(packed, scales, n=600, **SHARED)
        again = kernels.rotate_dequantize(packed, scales, n=600, out=out, **SHARED)
        assert torch.equal(again, decoded)
    with pytest.raises(RuntimeError, match="modified by an inplace operation"):
        loss.backward()
