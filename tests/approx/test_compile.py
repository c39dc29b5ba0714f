"""Compiled models: equal to eager ones, compiled anew only when a choice changes."""

from __future__ import annotations

import pytest
import torch
from torch import nn
from torch._dynamo.exc import Unsupported
from torch._dynamo.testing import CompileCounterWithBackend

from slimgrad.approx import (
    ChannelTopK,
    EveryNthStep,
    Exact,
    MeProp,
    PooledMeans,
    Random,
    TopK,
    TopOne,
    Zero,
    approximate,
)

X = torch.linspace(-3, 3, 4 * 3 * 36).sin().reshape(4, 3, 6, 6)


def net():
    torch.manual_seed(0)
    return nn.Sequential(
        nn.Conv2d(3, 4, 3, padding="same", padding_mode="reflect"),
        nn.BatchNorm2d(4),
        nn.ReLU(inplace=True),
        nn.Conv2d(4, 4, (4, 3), padding="same", dilation=(3, 1), groups=2),
        nn.Flatten(2),
        nn.Linear(36, 5),
    )


def gradients(model, call):
    model.zero_grad()
    call(X).square().sum().backward()
    return [p.grad for p in model.parameters()]


@pytest.fixture(autouse=True)
def _fresh_dynamo():
    torch._dynamo.reset()
    yield
    torch._dynamo.reset()


@pytest.mark.parametrize(
    "estimator",
    [Exact(), Zero(), TopOne(), TopK(), PooledMeans(), MeProp(), ChannelTopK()],
    ids=str,
)
def test_compiled_equals_eager_and_counts_alike(estimator):
    everything = {"where": lambda name, module: True}
    eager, model = net(), net()
    plain = approximate(eager, estimator, **everything)
    handle = approximate(model, estimator, **everything)
    backend = CompileCounterWithBackend("aot_eager")
    compiled = torch.compile(model, fullgraph=True, backend=backend)
    for _ in range(3):
        expected, got = gradients(eager, eager), gradients(model, compiled)
        for gradient, reference in zip(got, expected, strict=True):
            torch.testing.assert_close(gradient, reference, rtol=1e-5, atol=1e-5)
        plain.step()
        handle.step()
    assert backend.frame_count == 1
    assert handle.report() == plain.report()
    assert handle.report().exact_macs > 0


@pytest.mark.parametrize("dynamic", [None, True])
def test_two_scales_and_sizes_in_one_process(dynamic):
    for scale in (1.0, 0.5):
        torch.manual_seed(0)
        model = nn.Sequential(nn.Conv2d(3, 4, 3), nn.Flatten(2), nn.Linear(16, 5))
        compiled = torch.compile(model, fullgraph=True, backend="aot_eager", dynamic=dynamic)
        approximate(model, TopOne(scale), where=lambda name, module: True)
        for samples in (4, 3):
            expected, got = [], []
            for call, found in ((model, expected), (compiled, got)):
                model.zero_grad()
                call(X[:samples]).square().sum().backward()
                found += [p.grad for p in model.parameters()]
            for gradient, reference in zip(got, expected, strict=True):
                torch.testing.assert_close(gradient, reference, rtol=1e-5, atol=1e-5)


def test_compiled_code_is_made_once_for_each_choice():
    model = net()
    handle = approximate(model, Zero(), schedule=EveryNthStep(3))
    backend = CompileCounterWithBackend("aot_eager")
    compiled = torch.compile(model, fullgraph=True, backend=backend)
    zero = []
    for _ in range(9):
        zero.append(not gradients(model, compiled)[0].any())
        handle.step()
    assert zero == [False, False, True] * 3
    assert backend.frame_count == 2


def test_approximate_after_compile_takes_effect():
    model = net()
    compiled = torch.compile(model, backend="aot_eager")
    assert gradients(model, compiled)[0].any()
    handle = approximate(compiled, Zero())
    assert not gradients(model, compiled)[0].any()
    handle.restore()
    assert gradients(model, compiled)[0].any()


def test_random_runs_outside_compiled_code():
    eager, model = net(), net()
    plain, handle = approximate(eager, Random(), seed=5), approximate(model, Random(), seed=5)
    compiled = torch.compile(model, backend="aot_eager")
    for _ in range(2):
        expected, got = gradients(eager, eager), gradients(model, compiled)
        for gradient, reference in zip(got, expected, strict=True):
            torch.testing.assert_close(gradient, reference, rtol=1e-5, atol=1e-5)
        plain.step()
        handle.step()


def test_random_refuses_a_full_graph_with_the_reason():
    model = net()
    approximate(model, Random())
    with pytest.raises(Unsupported, match="estimators with random streams run outside"):
        torch.compile(model, fullgraph=True, backend="aot_eager")(X)


def test_partitioned_and_decomposed_graphs_equal_eager():
    """The steps before code generation; code generation itself takes a minute."""
    model = net()
    approximate(model, TopOne())
    eager = [g.clone() for g in gradients(model, model)]
    compiled = torch.compile(model, fullgraph=True, backend="aot_eager_decomp_partition")
    for gradient, reference in zip(gradients(model, compiled), eager, strict=True):
        torch.testing.assert_close(gradient, reference, rtol=1e-4, atol=1e-4)
