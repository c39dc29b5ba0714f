"""Checkpointing, autocast and gradient accumulation."""

from __future__ import annotations

import subprocess
import sys
import warnings

import pytest
import torch
from torch import nn
from torch.utils.checkpoint import checkpoint

from slimgrad.approx import Random, TopOne, Zero, approximate, plan
from slimgrad.core.errors import FallbackWarning

ESTIMATORS = [Zero(), TopOne(), Random(0.5)]


def net():
    torch.manual_seed(0)
    return nn.Sequential(
        nn.Conv2d(2, 4, 3, padding=1), nn.ReLU(), nn.Conv2d(4, 4, 3, groups=2), nn.ReLU()
    )


X = torch.linspace(-3, 3, 150).sin().reshape(3, 2, 5, 5)


def gradients(model, forward):
    model.zero_grad()
    forward(X.clone().requires_grad_()).square().sum().backward()
    return [p.grad.clone() for p in model.parameters()]


@pytest.mark.parametrize("reentrant", [True, False])
@pytest.mark.parametrize("estimator", ESTIMATORS, ids=str)
def test_checkpointing_changes_neither_gradients_nor_counts(estimator, reentrant):
    model = net()
    plain = approximate(model, estimator, seed=2)
    expected = gradients(model, model)
    counted = plain.report()
    plain.restore()
    handle = approximate(model, estimator, seed=2)
    got = gradients(model, lambda x: checkpoint(model, x, use_reentrant=reentrant))
    assert all(torch.equal(a, b) for a, b in zip(got, expected, strict=True))
    assert handle.report() == counted


@pytest.mark.parametrize("reentrant", [True, False])
def test_checkpointed_accumulation_draws_as_without(reentrant):
    def accumulate(forward):
        model.zero_grad()
        for _ in range(2):
            forward(X.clone().requires_grad_()).sum().backward()
        return model[2].weight.grad.clone()

    model = net()
    plain = approximate(model, Random(0.5))
    expected = accumulate(model)
    plain.restore()
    approximate(model, Random(0.5))
    got = accumulate(lambda x: checkpoint(model, x, use_reentrant=reentrant))
    assert torch.equal(got, expected)


def test_checkpointed_exact_layers_are_counted_once():
    model = net()
    handle = approximate(model, Zero(), where=["2"])
    for reentrant in (True, False):
        gradients(model, lambda x, r=reentrant: checkpoint(model, x, use_reentrant=r))
    assert handle.report().layers[0].exact_macs == 2 * 3 * 25 * 4 * 18


def test_saved_tensor_hooks_of_others_are_no_sign_of_a_checkpoint():
    """A reentrant checkpoint runs its layers inside the backward pass, here under such hooks."""

    def accumulate(model, forward):
        with torch.autograd.graph.save_on_cpu():
            for _ in range(2):
                forward(X.clone().requires_grad_()).sum().backward()
        return model[0].weight.grad

    plain, model = net(), net()
    counted, handle = approximate(plain, Random(0.5)), approximate(model, Random(0.5))
    expected = accumulate(plain, plain)
    got = accumulate(model, lambda x: checkpoint(model, x, use_reentrant=True))
    assert torch.equal(got, expected)
    assert handle.report() == counted.report()


def test_each_backward_pass_through_one_graph_draws_anew():
    model = net()
    approximate(model, Random(0.5))
    out = model(X).sum()
    out.backward(retain_graph=True)
    first = model[0].weight.grad.clone()
    out.backward()
    assert not torch.equal(model[0].weight.grad, 2 * first)


@pytest.mark.parametrize("missing", ["_BACKWARD_NUMBER", "_SAVING_HOOKS"])
def test_a_torch_that_does_not_tell_repeated_passes(monkeypatch, missing):
    """Gradients stay right, counts are those of all passes, and that is said once."""
    expected_model, model = net(), net()
    plain = approximate(expected_model, Random(0.5), seed=2)
    expected = gradients(expected_model, expected_model)
    monkeypatch.setattr(plan, missing, None)
    plan.warn_if_recomputing_is_unknown.cache_clear()
    with pytest.warns(FallbackWarning, match="does not tell forward passes that a checkpoint"):
        handle = approximate(model, Random(0.5), seed=2)
    got = gradients(model, lambda x: checkpoint(model, x, use_reentrant=False))
    assert all(torch.equal(a, b) for a, b in zip(got, expected, strict=True))
    twice = [2 * row.exact_macs for row in plain.report().layers]
    assert [row.exact_macs for row in handle.report().layers] == twice
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        approximate(net(), Zero())
    plan.warn_if_recomputing_is_unknown.cache_clear()


def test_torch_without_its_private_functions_imports():
    code = (
        "import torch\n"
        "del torch._C._current_graph_task_id, torch._C._autograd._top_saved_tensors_default_hooks\n"
        "import warnings, slimgrad\n"
        "warnings.simplefilter('ignore')\n"
        "layer = torch.nn.Conv2d(1, 1, 1)\n"
        "slimgrad.approximate(layer, slimgrad.Zero())\n"
        "layer(torch.ones(1, 1, 2, 2)).sum().backward()\n"
        "assert not layer.weight.grad.any()\n"
    )
    subprocess.run([sys.executable, "-c", code], check=True)


@pytest.mark.parametrize("layout", [torch.contiguous_format, torch.channels_last])
def test_bfloat16_autocast_equals_the_stock_one(traced, layout):
    def run(model):
        model.to(memory_format=layout)
        x = X.clone(memory_format=layout).requires_grad_()
        with torch.autocast("cpu", torch.bfloat16):
            out = model(x)
            loss = out.float().square().sum()
        loss.backward()
        return out, x.grad, [p.grad for p in model.parameters()]

    stock, model = net(), net()
    expected = run(stock)
    approximate(model, traced)
    got = run(model)
    assert got[0].dtype == torch.bfloat16
    assert torch.equal(got[0], expected[0])
    for gradient, reference in zip((got[1], *got[2]), (expected[1], *expected[2]), strict=True):
        assert gradient.dtype == torch.float32
        torch.testing.assert_close(gradient, reference, rtol=2e-2, atol=2e-2)


@pytest.mark.parametrize("estimator", ESTIMATORS, ids=str)
def test_autocast_around_backward_and_around_linear(estimator):
    layer = nn.Linear(4, 3)
    approximate(layer, estimator)
    x = torch.randn(2, 5, 4, requires_grad=True)
    with torch.autocast("cpu", torch.bfloat16):
        inside = layer(x)
        assert inside.dtype == torch.bfloat16
        inside.float().sum().backward()
    assert layer.weight.grad.dtype == x.grad.dtype == torch.float32
    out = layer(x)
    x.grad = None
    with torch.autocast("cpu", torch.bfloat16):
        out.sum().backward()
    expected = layer.weight.detach().sum(0).expand_as(x)  # in float32, whatever autocast says
    torch.testing.assert_close(x.grad, expected)


def test_float64_stays_float64_under_autocast():
    layer = nn.Conv2d(1, 1, 1).double()
    approximate(layer, Zero())
    x = torch.ones(1, 1, 2, 2, dtype=torch.float64)
    with torch.autocast("cpu", torch.bfloat16):
        assert layer(x).dtype == torch.float64


@pytest.mark.parametrize("estimator", [Zero(), TopOne()], ids=str)
def test_bfloat16_model(estimator):
    model = net().bfloat16()
    approximate(model, estimator)
    model(X.bfloat16()).float().sum().backward()
    assert all(p.grad.dtype == torch.bfloat16 for p in model.parameters())
