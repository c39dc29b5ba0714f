from __future__ import annotations

import copy
import pickle

import pytest
import torch
from torch import nn

import slimgrad
from slimgrad.approx import ExactPositions, LayerTiming, TuneReport
from slimgrad.approx import tune as tuning
from slimgrad.approx.layers import TUNED
from slimgrad.core.errors import ConfigError


def network():
    torch.manual_seed(0)
    return nn.Sequential(
        nn.Conv2d(3, 8, 3, padding=1),
        nn.BatchNorm2d(8),
        nn.ReLU(),
        nn.Conv2d(8, 8, 3, padding=1, padding_mode="reflect"),
        nn.Flatten(),
        nn.Linear(8 * 16, 4),
    )


def batch():
    return torch.randn(6, 3, 4, 4, generator=torch.Generator().manual_seed(1))


@pytest.fixture
def always_worth(monkeypatch):
    """Every layer gains, whatever the clock says."""

    def timing(name, x, grad_out, geometry, repeats):
        return LayerTiming(name, 1.0, 0.5, True)

    module = __import__("slimgrad.approx.tune", fromlist=["tune"])
    monkeypatch.setattr(module, "_time_layer", timing)
    times = iter([2.0, 1.5, 1.0] * 10)
    monkeypatch.setattr(module, "_step_seconds", lambda *arguments: next(times))


def gradients(model, x):
    model.zero_grad(set_to_none=True)
    model(x).square().mean().backward()
    return [parameter.grad.clone() for parameter in model.parameters()]


def test_gradients_stay_exact_and_parameters_stay_the_same_objects(always_worth):
    model, x = network(), batch()
    before = gradients(copy.deepcopy(model), x)
    parameters = list(model.parameters())
    statistics = model[1].running_mean.clone()
    report = tuning(model, x)
    assert report.chosen == ("0", "3")
    assert report.memory_format == "channels_last"
    assert torch.equal(model[1].running_mean, statistics)
    assert all(parameter.grad is None for parameter in model.parameters())
    for ours, stock in zip(gradients(model, x), before, strict=True):
        torch.testing.assert_close(ours, stock, rtol=1e-4, atol=1e-6)
    assert all(a is b for a, b in zip(parameters, model.parameters(), strict=True))
    assert model[0].weight.is_contiguous(memory_format=torch.channels_last)
    assert model[0]._approx_plan.estimator == ExactPositions()


def test_a_later_approximation_takes_over_and_keeps_the_exact_steps_tuned(always_worth):
    model, x = network(), batch()
    tuning(model, x)
    handle = slimgrad.approximate(
        model, slimgrad.Zero(), schedule=slimgrad.EveryNthStep(2), where=["0", "3"]
    )
    seen = []
    for _ in range(2):
        seen.append(model[0]._approx_plan.estimator)
        gradients(model, x)
        handle.step()
    assert ExactPositions() in seen
    assert slimgrad.Zero() in seen
    copied = pickle.loads(pickle.dumps(model))
    assert copied[0].__dict__[TUNED]
    handle.restore()
    assert type(model[0]) is nn.Conv2d


def test_what_does_not_gain_stays_stock(monkeypatch):
    module = __import__("slimgrad.approx.tune", fromlist=["tune"])
    monkeypatch.setattr(
        module, "_time_layer", lambda name, *rest: LayerTiming(name, 1.0, 2.0, False)
    )
    model = network()
    report = tuning(model, (batch(), torch.zeros(6)), repeats=1)
    assert report.chosen == ()
    assert type(model[0]) is nn.Conv2d
    assert report.gain == 1.0


def test_a_tuned_model_that_is_slower_after_all_stays_stock(monkeypatch):
    module = __import__("slimgrad.approx.tune", fromlist=["tune"])
    monkeypatch.setattr(
        module, "_time_layer", lambda name, *rest: LayerTiming(name, 1.0, 0.5, True)
    )
    times = iter([2.0, 1.5, 1.7])
    monkeypatch.setattr(module, "_step_seconds", lambda *arguments: next(times))
    model = network()
    report = tuning(model, batch())
    assert report.chosen == ()
    assert report.tuned_step_seconds == 1.5
    assert type(model[0]) is nn.Conv2d


def test_the_real_clock_and_a_loss_of_ones_own():
    model = network()

    def loss(net, given):
        images, labels = given
        return nn.functional.cross_entropy(net(images), labels)

    given = (batch(), torch.tensor([0, 1, 2, 3, 0, 1]))
    report = tuning(model, given, loss=loss, repeats=2)
    assert [layer.name for layer in report.layers] == ["0", "3"]
    assert all(layer.stock_seconds > 0 for layer in report.layers)
    assert set(report.stock_step_seconds) == {"contiguous", "channels_last"}
    text = str(report)
    assert "ms a forward and backward pass" in text
    assert "position kernel takes" in text


def test_the_report_counts_against_the_better_layout():
    report = TuneReport("contiguous", {"contiguous": 2.0, "channels_last": 3.0}, 1.6, ())
    assert report.gain == 1.25


class TwoOutputs(nn.Module):
    def __init__(self):
        super().__init__()
        self.layer = nn.Conv2d(3, 2, 3)

    def forward(self, x):
        return self.layer(x), x


@pytest.mark.parametrize(
    ("model", "given", "settings", "message"),
    [
        (3, batch(), {}, r"model must be a torch\.nn\.Module, got 3"),
        (network().eval(), batch(), {}, r"evaluation mode; call model\.train"),
        (network(), batch(), {"loss": 3}, "loss must be a function of"),
        (network(), batch(), {"loss": lambda m, b: m(b)}, "loss must return a scalar tensor"),
        (network(), batch(), {"repeats": 0}, "repeats must be an integer >= 1, got 0"),
        (network(), {"x": 1}, {}, "sample_batch must be a tensor or begin with one, got dict"),
        (TwoOutputs(), batch(), {}, "the model returns tuple; give loss="),
    ],
)
def test_wrong_arguments_are_refused(model, given, settings, message):
    with pytest.raises(ConfigError, match=message):
        tuning(model, given, **settings)


def test_an_approximated_model_is_refused():
    model = network()
    handle = slimgrad.approximate(model, slimgrad.Zero())
    with pytest.raises(ConfigError, match="approximated already"):
        tuning(model, batch())
    handle.restore()
