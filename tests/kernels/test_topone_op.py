"""The top-1 operation as torch, its compiler and its callers see it."""

from __future__ import annotations

import subprocess
import sys

import pytest
import torch

from slimgrad.core.errors import ConfigError
from slimgrad.kernels import topone_weight_grad
from slimgrad.kernels.backend import use_backend

GENERATOR_SEED = 9


def tensors(dtype=torch.float32, channels_last=False):
    generator = torch.Generator().manual_seed(GENERATOR_SEED)
    x = torch.randn((4, 6, 8, 8), generator=generator).to(dtype)
    grad_out = torch.randn((4, 10, 8, 8), generator=generator).to(dtype)
    layout = torch.channels_last if channels_last else torch.contiguous_format
    return x.contiguous(memory_format=layout), grad_out.contiguous(memory_format=layout)


@pytest.mark.parametrize("name", ["auto", "reference"])
@pytest.mark.parametrize("channels_last", [False, True])
def test_opcheck(name, channels_last):
    x, grad_out = tensors(channels_last=channels_last)
    with use_backend(name):
        torch.library.opcheck(
            torch.ops.slimgrad.topone_weight_grad,
            (x, grad_out, (3, 3), (1, 1), (1, 1), (1, 1), 2, 0.5),
        )


@pytest.mark.parametrize("channels_last", [False, True])
def test_compiled_equals_eager(channels_last):
    x, grad_out = tensors(channels_last=channels_last)

    def step(x, grad_out):
        return topone_weight_grad(x, grad_out, 3, padding=1, groups=2) * 2

    compiled = torch.compile(step, fullgraph=True, backend="aot_eager")
    got, eager = compiled(x, grad_out), step(x, grad_out)
    assert torch.equal(got, eager)
    assert got.stride() == eager.stride()


def test_one_compiled_function_serves_any_scale():
    x, grad_out = tensors()
    compiled = torch.compile(topone_weight_grad, fullgraph=True, backend="aot_eager")
    for scale in (1.0, 0.5, 0.25):
        got = compiled(x, grad_out, 3, padding=1, scale=scale)
        assert torch.equal(got, topone_weight_grad(x, grad_out, 3, padding=1, scale=scale))


@pytest.mark.parametrize("name", ["auto", "reference"])
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64, torch.bfloat16])
def test_the_result_follows_the_layout_and_dtype_of_x(name, dtype):
    with use_backend(name):
        plain = topone_weight_grad(*tensors(dtype), 3, padding=1)
        last = topone_weight_grad(*tensors(dtype, channels_last=True), 3, padding=1)
    assert plain.is_contiguous()
    assert last.is_contiguous(memory_format=torch.channels_last)
    assert plain.dtype == last.dtype == dtype
    assert torch.allclose(plain, last, rtol=1e-2 if dtype == torch.bfloat16 else 1e-3, atol=1e-4)


@pytest.mark.parametrize("name", ["auto", "reference"])
def test_no_samples_give_zeros(name):
    x, grad_out = tensors()
    with use_backend(name):
        got = topone_weight_grad(x[:0], grad_out[:0], (3, 1), padding=(1, 0))
    assert torch.equal(got, torch.zeros(10, 6, 3, 1))


def test_inputs_that_require_gradients_are_served_but_not_differentiated():
    x, grad_out = tensors()
    got = topone_weight_grad(x.requires_grad_(), grad_out, 3, padding=1)
    assert torch.equal(got.detach(), topone_weight_grad(x.detach(), grad_out, 3, padding=1))
    with pytest.raises(ConfigError, match="cannot be differentiated again"):
        got.sum().backward()


SETTINGS = [
    ("kernel_size", 0, "kernel_size must be an integer >= 1 or two of them, got 0"),
    ("kernel_size", "3", "kernel_size must be an integer >= 1 or two of them, got '3'"),
    ("stride", (1, 0), r"stride must be an integer >= 1 or two of them, got \(1, 0\)"),
    ("stride", 1.5, "stride must be an integer >= 1 or two of them, got 1.5"),
    ("padding", -1, "padding must be an integer >= 0"),
    ("padding", None, "padding must be an integer >= 0 or two of them, got None"),
    ("dilation", (1, 1, 1), "dilation must be an integer >= 1 or two of them"),
    ("groups", 4, "groups must be an integer >= 1 and divide the 6 channels of x and the 10 of"),
    ("groups", 1.0, "groups must be an integer >= 1 .* got 1.0"),
    ("scale", float("nan"), "scale must be a finite number, got nan"),
    ("scale", "1", "scale must be a finite number, got '1'"),
]


@pytest.mark.parametrize(("name", "value", "message"), SETTINGS)
def test_bad_settings_are_named(name, value, message):
    with pytest.raises(ConfigError, match=message):
        topone_weight_grad(*tensors(), **{"kernel_size": 3, "padding": 1, name: value})


def test_bad_tensors_are_named():
    x, grad_out = tensors()
    cases = [
        (x[0], grad_out, "x must have 4 dimensions"),
        (x, grad_out[0], "grad_out must have 4 dimensions"),
        (x, grad_out.double(), "share one floating-point dtype, got torch.float32 and torch.float"),
        (x.int(), grad_out.int(), "share one floating-point dtype"),
        (x, grad_out.to("meta"), "must be on one device, got cpu and meta"),
        (x, grad_out[:3], "x has 4 samples but grad_out has 3"),
        (x, grad_out[:, :, :7], "grad_out has 7 rows, but x with 8, kernel 3"),
        (x, grad_out[..., :7], "grad_out has 7 columns"),
        (x[..., :0], grad_out[..., :0], "and dilation 1 gives 0"),
    ]
    for bad_x, bad_grad_out, message in cases:
        with pytest.raises(ConfigError, match=message):
            topone_weight_grad(bad_x, bad_grad_out, 3, padding=1)


def test_importing_prints_nothing():
    done = subprocess.run(
        [sys.executable, "-c", "import slimgrad.kernels"], capture_output=True, check=True
    )
    assert done.stdout == done.stderr == b""
