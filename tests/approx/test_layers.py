"""Converted layers against stock ones: every estimator, geometry, layout and form of gradient."""

from __future__ import annotations

import copy
import math

import pytest
import torch
from torch import nn

from slimgrad.approx import EveryNthStep, Exact, Random, Skip, TopOne, Zero, approximate
from slimgrad.approx.layers import layer_geometry

CONVS = {
    "plain": {"kernel_size": 3},
    "pointwise": {"kernel_size": 1},
    "padded": {"kernel_size": (3, 5), "padding": (1, 2)},
    "no bias": {"kernel_size": 3, "padding": 1, "bias": False},
    "strided": {"kernel_size": 3, "stride": (2, 3), "padding": 1},
    "dilated": {"kernel_size": 3, "dilation": (2, 1), "padding": (2, 1)},
    "groups": {"kernel_size": 3, "groups": 2, "padding": 1},
    "depthwise": {"kernel_size": 3, "groups": 4, "padding": 1, "stride": 2},
    "groups dilated strided": {"kernel_size": 2, "groups": 2, "dilation": 2, "stride": 2},
    "same": {"kernel_size": 3, "padding": "same"},
    "same even": {"kernel_size": (2, 4), "padding": "same"},
    "same even dilated": {"kernel_size": (4, 3), "padding": "same", "dilation": (3, 2)},
    "valid": {"kernel_size": 3, "padding": "valid"},
    "reflect": {"kernel_size": 3, "padding": 1, "padding_mode": "reflect"},
    "replicate": {"kernel_size": 3, "padding": (2, 1), "padding_mode": "replicate"},
    "circular": {"kernel_size": 3, "padding": 1, "padding_mode": "circular", "groups": 2},
    "circular same": {"kernel_size": (4, 3), "padding": "same", "padding_mode": "circular"},
}
LAYOUTS = {"contiguous": torch.contiguous_format, "channels_last": torch.channels_last}
LOSSES = {
    "dense": lambda out: (out * torch.linspace(-1, 2, out.numel()).view_as(out)).sum(),
    "expanded": lambda out: out.sum(),
    "sliced": lambda out: (out[..., ::2] ** 2).sum(),
    "transposed": lambda out: (out.transpose(-1, -2).contiguous().cumsum(-1) ** 2).sum(),
}


def pair(name, layout=torch.contiguous_format, dtype=torch.float32):
    """A stock layer, a converted copy, and an input."""
    torch.manual_seed(0)
    stock = nn.Conv2d(4, 8, **CONVS[name]).to(dtype=dtype, memory_format=layout)
    x = torch.randn(3, 4, 9, 8, dtype=dtype).contiguous(memory_format=layout)
    return stock, copy.deepcopy(stock), x


def run(layer, x, loss, training_input=True):
    """Output, input gradient and parameter gradients."""
    x = x.detach().clone(memory_format=torch.preserve_format).requires_grad_(training_input)
    layer.zero_grad()
    out = layer(x)
    loss(out).backward()
    return out.detach(), x.grad, {name: p.grad for name, p in layer.named_parameters()}


@pytest.mark.parametrize("loss", LOSSES.values(), ids=LOSSES)
@pytest.mark.parametrize("layout", LAYOUTS.values(), ids=LAYOUTS)
@pytest.mark.parametrize("name", CONVS)
def test_the_estimated_path_with_exact_arithmetic_is_autograd(name, layout, loss, traced):
    stock, layer, x = pair(name, layout)
    approximate(layer, traced)
    expected, got = run(stock, x, loss), run(layer, x, loss)
    assert torch.equal(expected[0], got[0])
    torch.testing.assert_close(got[1], expected[1], rtol=1e-5, atol=1e-5)
    for key, gradient in expected[2].items():
        torch.testing.assert_close(got[2][key], gradient, rtol=1e-5, atol=1e-4)
        assert got[2][key].stride() == dict(layer.named_parameters())[key].stride()


@pytest.mark.parametrize("layout", LAYOUTS.values(), ids=LAYOUTS)
@pytest.mark.parametrize("estimator", [Zero(), Skip(), Random(0.5), TopOne(0.5)], ids=str)
@pytest.mark.parametrize("name", CONVS)
def test_output_input_and_bias_gradients_stay_exact(name, estimator, layout):
    stock, layer, x = pair(name, layout)
    approximate(layer, estimator)
    loss = LOSSES["dense"]
    expected, got = run(stock, x, loss), run(layer, x, loss)
    assert torch.equal(expected[0], got[0])
    torch.testing.assert_close(got[1], expected[1], rtol=1e-5, atol=1e-5)
    if layer.bias is not None:
        torch.testing.assert_close(got[2]["bias"], expected[2]["bias"], rtol=1e-5, atol=1e-5)
    weight_grad = got[2]["weight"]
    if estimator == Skip():
        assert weight_grad is None
    else:
        assert weight_grad.stride() == layer.weight.stride()
        assert (weight_grad == 0).all() == (estimator == Zero())


@pytest.mark.parametrize("layout", LAYOUTS.values(), ids=LAYOUTS)
@pytest.mark.parametrize("name", ["padded", "strided", "dilated", "depthwise", "groups", "same"])
def test_top_one_weight_gradient(name, layout, topone_truth):
    _, layer, x = pair(name, layout, torch.float64)
    approximate(layer, TopOne())
    out, _, gradients = run(layer, x, LOSSES["dense"])
    grad_out = torch.linspace(-1, 2, out.numel()).to(torch.float64).view_as(out)
    expected = topone_truth(x, grad_out, layer_geometry(layer))
    torch.testing.assert_close(gradients["weight"], expected, rtol=1e-6, atol=1e-6)


@pytest.mark.parametrize("estimator", [Exact(), Zero(), TopOne(), Random()], ids=str)
def test_exact_steps_run_the_stock_operation_bit_for_bit(estimator):
    stock, layer, x = pair("groups")
    approximate(layer, estimator, schedule=EveryNthStep(2))
    expected, got = run(stock, x, LOSSES["dense"]), run(layer, x, LOSSES["dense"])
    assert torch.equal(expected[1], got[1])
    assert all(torch.equal(expected[2][key], got[2][key]) for key in expected[2])
    assert type(layer(x).grad_fn).__name__ == "ConvolutionBackward0"


@pytest.mark.parametrize("shape", [(4,), (5, 4), (3, 2, 4), (2, 3, 2, 4)])
@pytest.mark.parametrize("bias", [True, False])
def test_linear(shape, bias, traced):
    torch.manual_seed(1)
    stock = nn.Linear(4, 6, bias=bias)
    x = torch.randn(shape)
    for estimator in (traced, Zero(), TopOne()):
        layer = copy.deepcopy(stock)
        approximate(layer, estimator)
        expected, got = run(stock, x, LOSSES["dense"]), run(layer, x, LOSSES["dense"])
        torch.testing.assert_close(got[0], expected[0])
        torch.testing.assert_close(got[1], expected[1])
        if bias:
            torch.testing.assert_close(got[2]["bias"], expected[2]["bias"])
        if estimator is traced or (estimator == TopOne() and len(shape) <= 2):
            torch.testing.assert_close(got[2]["weight"], expected[2]["weight"])
        elif estimator == Zero():
            assert not got[2]["weight"].any()


def test_sample_without_batch_dimension(traced):
    stock, layer, x = pair("same even")
    approximate(layer, traced)
    expected, got = run(stock, x[0], LOSSES["dense"]), run(layer, x[0], LOSSES["dense"])
    assert got[0].shape == expected[0].shape == (8, 9, 8)
    torch.testing.assert_close(got[2]["weight"], expected[2]["weight"], rtol=1e-5, atol=1e-4)


def test_empty_batch_and_expanded_input(traced):
    for estimator in (traced, Zero(), TopOne()):
        stock, layer, x = pair("padded")
        approximate(layer, estimator)
        _, _, gradients = run(layer, x[:0], LOSSES["expanded"])
        assert not gradients["weight"].any()
        wide = x[:1].expand(3, -1, -1, -1)
        expected, got = run(stock, wide, LOSSES["dense"]), run(layer, wide, LOSSES["dense"])
        torch.testing.assert_close(got[1], expected[1], rtol=1e-5, atol=1e-5)


@pytest.mark.filterwarnings("ignore:Initializing zero-element tensors")
@pytest.mark.parametrize("sizes", [(4, 0), (0, 3)])
def test_layers_without_outputs_or_inputs(sizes, traced):
    for estimator in (Exact(), traced, Zero(), TopOne(), Random()):
        for shape in ((2,), (2, 5), (2, 3, 5)):
            layer = nn.Linear(*sizes)
            handle = approximate(layer, estimator)
            layer(torch.ones(*shape[1:], sizes[0])).sum().backward()
            assert layer.weight.grad.shape == layer.weight.shape
            assert handle.report().exact_macs == 0


def test_wrong_inputs_get_the_stock_error():
    layer, linear = nn.Conv2d(4, 8, 3), nn.Linear(4, 2)
    approximate(layer, Zero())
    approximate(linear, Zero())
    with pytest.raises(RuntimeError, match=r"3D \(unbatched\) or 4D \(batched\) input"):
        layer(torch.ones(2, 4))
    with pytest.raises(RuntimeError, match=r"to have 4 channels"):
        layer(torch.ones(1, 3, 5, 5))
    with pytest.raises(RuntimeError, match="shapes cannot be multiplied"):
        linear(torch.ones(2, 3))
    with pytest.raises(TypeError, match="invalid combination of arguments"):
        layer("x")


def test_input_gradient_is_computed_only_where_needed():
    _, layer, x = pair("padded")
    approximate(layer, Zero())
    _, input_grad, gradients = run(layer, x, LOSSES["dense"], training_input=False)
    assert input_grad is None
    assert gradients["bias"].any()
    layer.bias.requires_grad_(False)
    _, _, gradients = run(layer, x, LOSSES["dense"])
    assert gradients["bias"] is None


@pytest.mark.parametrize(("estimator", "keeps"), [(Zero(), False), (TopOne(), True)])
def test_input_is_saved_only_where_the_estimator_needs_it(estimator, keeps):
    _, layer, x = pair("padded")
    approximate(layer, estimator)
    saved = []
    with torch.autograd.graph.saved_tensors_hooks(lambda t: saved.append(t) or t, lambda t: t):
        layer(x)
    assert any(tensor.data_ptr() == x.data_ptr() for tensor in saved) == keeps
    assert any(tensor.data_ptr() == layer.weight.data_ptr() for tensor in saved)


@pytest.mark.filterwarnings("ignore:.*torch.jit.trace.*:DeprecationWarning")
def test_stock_operation_outside_training():
    _, layer, x = pair("padded")
    approximate(layer, Zero())
    stock_node = "ConvolutionBackward0"
    assert type(layer(x).grad_fn).__name__ != stock_node
    assert type(layer.eval()(x).grad_fn).__name__ == stock_node
    layer.train()
    with torch.no_grad():
        assert layer(x).grad_fn is None
    layer.weight.requires_grad_(False)
    assert type(layer(x).grad_fn).__name__ == stock_node
    assert torch.isfinite(torch.jit.trace(layer, x)(x)).all()


def test_export_holds_the_stock_operation():
    _, layer, x = pair("padded")
    approximate(layer, TopOne())
    program = torch.export.export(layer, (x,))
    targets = {str(node.target) for node in program.graph.nodes if node.op == "call_function"}
    assert targets == {"aten.conv2d.default"}


def test_estimate_in_the_layout_of_a_transposed_weight(traced):
    layer = nn.Linear(4, 6)
    layer.weight = nn.Parameter(torch.randn(4, 6).t())
    approximate(layer, traced)
    layer(torch.randn(3, 4)).sum().backward()
    assert layer.weight.grad.stride() == layer.weight.stride() == (1, 6)


def test_random_weight_gradient_has_its_scale():
    # 8 * 4 * 9 = 288 draws: the sample standard deviation is within 6 / sqrt(2 n) of the scale
    # but for 2e-9 of the seeds.
    _, layer, x = pair("padded")
    layer = nn.Conv2d(4, 8, 3)
    approximate(layer, Random(scale=3.0), seed=4)
    layer(x).sum().backward()
    assert abs(float(layer.weight.grad.std()) / 3 - 1) < 6 / math.sqrt(2 * 288)
