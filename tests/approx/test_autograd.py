"""Second derivatives, function transforms, and what the graph keeps."""

from __future__ import annotations

import gc
import weakref

import pytest
import torch
from torch import nn

from slimgrad.approx import Random, Skip, TopOne, Zero, approximate
from slimgrad.core.errors import SlimgradError


def net():
    torch.manual_seed(0)
    return nn.Sequential(nn.Conv2d(2, 3, 3, padding=1), nn.Tanh(), nn.Conv2d(3, 1, 3)).double()


X = torch.linspace(-1, 1, 100, dtype=torch.float64).sin().reshape(2, 2, 5, 5)


@pytest.mark.parametrize("estimator", [Zero(), Random(), TopOne()], ids=str)
def test_second_derivative_of_an_estimate_is_refused_by_name(estimator):
    model = net()
    handle = approximate(model, estimator, where=["2"])
    loss = model(X).square().sum()
    (gradient,) = torch.autograd.grad(loss, model[2].weight, create_graph=True)
    with pytest.raises(
        SlimgradError, match=r"layer '2': the weight gradient estimated by .* again"
    ):
        gradient.sum().backward()
    handle.restore()
    loss = model(X).square().sum()
    (gradient,) = torch.autograd.grad(loss, model[2].weight, create_graph=True)
    gradient.sum().backward()


def penalty_gradient(model, fixed_output_gradient=False):
    """Derivative of the squared norm of the input gradient by the last weight."""
    x = X.clone().requires_grad_()
    out = model(x)
    output_gradient = 2 * (out.detach() if fixed_output_gradient else out)
    (input_grad,) = torch.autograd.grad(out, x, output_gradient, create_graph=True)
    return torch.autograd.grad(input_grad.square().sum(), model[2].weight)[0]


@pytest.mark.parametrize("estimator", [Zero(), TopOne(), Skip(), Random()], ids=str)
def test_second_derivative_through_the_input_gradient_is_exact(estimator):
    model = net()
    approximate(model, estimator, where=["2"])
    expected = penalty_gradient(net(), fixed_output_gradient=True)
    torch.testing.assert_close(penalty_gradient(model, fixed_output_gradient=True), expected)


def test_second_derivative_through_the_output_is_estimated():
    """The output's part of the derivative is a weight gradient like any other: here zero."""
    model = net()
    approximate(model, Zero(), where=["2"])
    only_through_input_grad = penalty_gradient(net(), fixed_output_gradient=True)
    torch.testing.assert_close(penalty_gradient(model), only_through_input_grad)
    assert not torch.allclose(penalty_gradient(net()), only_through_input_grad)


def test_functional_gradients_equal_autograd(traced):
    model = net()
    parameters = dict(model.named_parameters())

    def loss(values):
        return torch.func.functional_call(model, values, (X,)).square().sum()

    expected = torch.func.grad(loss)(parameters)
    approximate(model, traced)
    for name, gradient in torch.func.grad(loss)(parameters).items():
        torch.testing.assert_close(gradient, expected[name])


def test_input_gradient_passes_gradcheck():
    model = net()
    approximate(model, Zero())
    x = X[:1, :, :4, :4].clone().requires_grad_()
    assert torch.autograd.gradcheck(model, (x,))


def test_graph_is_freed_with_the_output():
    model = net()
    approximate(model, TopOne())
    x = X.clone()
    alive = weakref.ref(x)
    out = model(x)
    del x
    assert alive() is not None
    del out
    gc.collect()
    assert alive() is None


def test_a_weight_changed_before_backward_is_noticed():
    model = net()
    approximate(model, Zero())
    loss = model(X).sum()
    with torch.no_grad():
        model[2].weight.add_(1)
    with pytest.raises(RuntimeError, match="modified by an inplace operation"):
        loss.backward()
