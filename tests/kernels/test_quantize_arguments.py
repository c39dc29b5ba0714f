"""Wrong arguments are refused in one line; right ones in an unusual layout are handled."""

from __future__ import annotations

import pytest
import torch

from slimgrad import kernels
from slimgrad.core.errors import ConfigError
from slimgrad.kernels import backend

UNIFORM = tuple(j / 7 for j in range(8))
SETTINGS = {"levels": UNIFORM, "grid": "uniform", "norm": "l2", "bucket_size": 4, "bits": 4}
LAYOUT = {"levels": UNIFORM, "bucket_size": 4, "bits": 4}


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"bits": 1}, "bits must be an integer from 2 to 8, got 1"),
        ({"bits": 9}, "bits must be an integer from 2 to 8, got 9"),
        ({"bits": 4.0}, "bits must be an integer from 2 to 8, got 4.0"),
        ({"bucket_size": 0}, "bucket_size must be an integer from 1 to 2.*, got 0"),
        ({"bucket_size": 512.0}, "bucket_size must be an integer from 1 to 2.*, got 512.0"),
        ({"norm": "l3"}, "unknown norm 'l3': did you mean 'l2'"),
        ({"grid": "unifrom"}, "unknown grid 'unifrom': did you mean 'uniform'"),
        ({"grid": "exponential"}, "are not the exponential grid; use grid='table'"),
        ({"bits": 3}, "8 levels do not fit in 3 bits: give 2 to 4"),
        ({"levels": (0.0,)}, "1 levels do not fit in 4 bits"),
        ({"levels": (0.0, 0.5)}, "levels must ascend strictly from 0 to 1"),
        ({"levels": (0.0, 0.5, 0.5, 1.0)}, "levels must ascend strictly from 0 to 1"),
        ({"levels": (0.0, float("nan"), 1.0)}, "levels must ascend strictly from 0 to 1"),
        ({"key": -1}, r"key must be an integer in \[0, 2\*\*64\), got -1"),
        ({"key": 1 << 64}, r"key must be an integer in \[0, 2\*\*64\)"),
        ({"key": 0.5}, r"key must be an integer in \[0, 2\*\*64\), got 0.5"),
    ],
)
def test_quantize_refuses(change, message):
    with pytest.raises(ConfigError, match=message):
        kernels.quantize(torch.ones(8), **{**SETTINGS, "key": 0, **change})


@pytest.mark.parametrize(
    "vector", [torch.ones(8, dtype=torch.float64), torch.ones(2, 4), torch.ones(8, device="meta")]
)
def test_vectors_of_another_kind_are_refused(vector):
    with pytest.raises(ConfigError, match=r"vector must be flat, torch\.float32 and on the CPU"):
        kernels.quantize(vector, **SETTINGS, key=0)


def test_sizes_that_do_not_agree_are_refused():
    scales, packed = kernels.quantize(torch.ones(10), **SETTINGS, key=0)
    with pytest.raises(ConfigError, match="packed must have 6 elements, got 5"):
        kernels.dequantize(packed, scales, n=11, **LAYOUT)
    with pytest.raises(ConfigError, match="scales must have 3 elements, got 2"):
        kernels.dequantize(packed, scales[:2], n=10, **LAYOUT)
    with pytest.raises(ConfigError, match="n must be an integer >= 0, got -3"):
        kernels.dequantize(packed, scales, n=-3, **LAYOUT)
    with pytest.raises(ConfigError, match="packed must have 6 elements, got 5"):
        kernels.dequantize_add_(torch.zeros(12), packed, scales, **LAYOUT)


def test_dequantize_add_refuses_what_it_cannot_change_in_place():
    scales, packed = kernels.quantize(torch.ones(10), **SETTINGS, key=0)
    with pytest.raises(ConfigError, match="out must be contiguous"):
        kernels.dequantize_add_(torch.zeros(20)[::2], packed, scales, **LAYOUT)
    with pytest.raises(ConfigError, match="out must not require grad"):
        kernels.dequantize_add_(torch.zeros(10, requires_grad=True), packed, scales, **LAYOUT)
    for alpha in (float("nan"), float("inf"), 1e39):
        with pytest.raises(ConfigError, match="alpha must be finite in float32"):
            kernels.dequantize_add_(torch.zeros(10), packed, scales, alpha=alpha, **LAYOUT)


@pytest.mark.parametrize("name", ["reference", "auto"])
def test_strided_and_differentiable_input_is_copied(name):
    v = torch.arange(40.0)
    with backend.use_backend(name):
        expected = kernels.quantize(v[::2].clone(), **SETTINGS, key=3)
        strided = kernels.quantize(v[::2], **SETTINGS, key=3)
        tracked = kernels.quantize(v[::2].clone().requires_grad_(), **SETTINGS, key=3)
        for got in (strided, tracked):
            assert torch.equal(got[0], expected[0])
            assert torch.equal(got[1], expected[1])
            assert not got[0].requires_grad
        scales, packed = expected
        wide = torch.stack([packed, packed], 1)[:, 0]
        plain = kernels.dequantize(packed, scales, n=20, **LAYOUT)
        assert torch.equal(kernels.dequantize(wide, scales, n=20, **LAYOUT), plain)


def test_add_is_the_sum_of_products_rounded_one_by_one():
    v = torch.randn(1000, generator=torch.Generator().manual_seed(0))
    out = torch.randn(1000, generator=torch.Generator().manual_seed(1))
    scales, packed = kernels.quantize(v, **SETTINGS, key=0)
    value = kernels.dequantize(packed, scales, n=1000, **LAYOUT)
    got = kernels.dequantize_add_(out.clone(), packed, scales, alpha=0.1, **LAYOUT)
    assert torch.equal(got, out + value * 0.1)


@pytest.mark.parametrize("name", ["reference", "auto"])
def test_autograd_sees_that_a_saved_tensor_was_changed(name):
    scales, packed = kernels.quantize(torch.ones(10), **SETTINGS, key=0)
    weight, out = torch.ones(10, requires_grad=True), torch.ones(10)
    loss = (weight * out).sum()
    with backend.use_backend(name):
        kernels.dequantize_add_(out, packed, scales, **LAYOUT)
    with pytest.raises(RuntimeError, match="modified by an inplace operation"):
        loss.backward()


@pytest.mark.parametrize("name", ["reference", "auto"])
def test_inference_tensors_are_added_to(name):
    with torch.inference_mode(), backend.use_backend(name):
        scales, packed = kernels.quantize(torch.ones(10), **{**SETTINGS, "norm": "linf"}, key=0)
        total = kernels.dequantize_add_(torch.ones(10), packed, scales, **LAYOUT)
    assert total.tolist() == [2.0] * 10


def test_levels_to_decode_with_may_begin_above_zero():
    packed = kernels.pack_symbols(torch.tensor([0, 1, 2, 3], dtype=torch.uint8), 2)
    scales = torch.tensor([2.0])
    settings = {"n": 4, "bits": 2, "bucket_size": 4}
    decoded = kernels.dequantize(packed, scales, levels=(0.25, 1.0), **settings)
    assert decoded.tolist() == [0.5, 2.0, -0.5, -2.0]
    signs = kernels.pack_symbols(torch.tensor([0, 1, 1], dtype=torch.uint8), 1)
    decoded = kernels.dequantize(signs, scales, n=3, levels=(1.0,), bits=1, bucket_size=4)
    assert decoded.tolist() == [2.0, -2.0, -2.0]


@pytest.mark.parametrize(
    ("levels", "message"),
    [
        ((), "0 levels do not fit in 2 bits: give 1 to 2"),
        ((0.0, 0.5, 1.0), "3 levels do not fit in 2 bits: give 1 to 2"),
        ((-1.0, 1.0), "levels must ascend strictly from 0 or above"),
        ((1.0, 0.5), "levels must ascend strictly from 0 or above"),
        ((0.5, float("inf")), "levels must ascend strictly from 0 or above"),
    ],
)
def test_levels_that_cannot_be_decoded_with_are_refused(levels, message):
    packed, scales = torch.zeros(1, dtype=torch.uint8), torch.ones(1)
    with pytest.raises(ConfigError, match=message):
        kernels.dequantize(packed, scales, n=4, levels=levels, bits=2, bucket_size=4)


@pytest.mark.parametrize("choice", ["native", "reference"])
def test_results_go_to_memory_that_is_given(choice):
    if choice == "native" and not backend.usable_isas():
        pytest.skip("the C++ kernels were not built")
    vector = torch.randn(10, generator=torch.Generator().manual_seed(0))
    dither = {"step_rms": 1.0, "bits": 4, "bucket_size": 4}
    with backend.use_backend(choice):
        for work, settings in ((kernels.quantize, SETTINGS), (kernels.dither, dither)):
            scales, packed = work(vector, **settings, key=3)
            out = (torch.zeros_like(scales), torch.zeros_like(packed))
            found = work(vector, **settings, key=3, out=out)
            assert found[0] is out[0]
            assert found[1] is out[1]
            assert torch.equal(out[0], scales)
            assert torch.equal(out[1], packed)


def test_memory_of_another_form_is_refused():
    scales, packed = torch.zeros(3), torch.zeros(5, dtype=torch.uint8)
    for out, message in (
        ((scales[:2], packed), r"out\[0\] must have 3 elements, got 2"),
        ((scales, packed.float()), r"out\[1\] must be flat, torch\.uint8"),
        ((torch.zeros(6)[::2], packed), "out must be contiguous"),
    ):
        with pytest.raises(ConfigError, match=message):
            kernels.quantize(torch.ones(10), **SETTINGS, key=0, out=out)
