"""Steps, counts, state and reports of the handle."""

from __future__ import annotations

import io

import pytest
import torch
from torch import nn

from slimgrad.approx import (
    Alternate,
    EveryNthLayer,
    EveryNthStep,
    Exact,
    Random,
    Schedule,
    Skip,
    TopOne,
    Zero,
    approximate,
    plan,
)
from slimgrad.core.errors import CheckpointError, ConfigError, NoEffectWarning
from slimgrad.core.rng import normal, stream_key


def net():
    torch.manual_seed(0)
    return nn.Sequential(
        nn.Conv2d(1, 2, 3), nn.ReLU(), nn.Conv2d(2, 2, 3), nn.Flatten(), nn.Linear(8, 3)
    )


def train_step(model, optimizer=None):
    model.zero_grad()
    x = torch.linspace(-2, 2, 72).sin().reshape(2, 1, 6, 6)
    model(x).square().sum().backward()
    if optimizer is not None:
        optimizer.step()


def weight_grad(model, name="0"):
    return model.get_submodule(name).weight.grad


def test_step_by_hand_moves_the_schedule():
    model = net()
    handle = approximate(model, Zero(), schedule=EveryNthStep(3))
    zero_steps = []
    for step in range(7):
        assert handle.current_step == step
        train_step(model)
        if not weight_grad(model).any():
            zero_steps.append(step)
        handle.step()
    assert zero_steps == [2, 5]


def test_optimizer_steps_the_handle():
    model = net()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
    handle = approximate(model, Zero(), schedule=Alternate(), optimizer=optimizer)
    for _ in range(3):
        train_step(model, optimizer)
    assert handle.current_step == handle.report().step == 3
    with pytest.raises(ConfigError, match="this handle steps with its optimizer"):
        handle.step()
    handle.restore()
    optimizer.step()
    assert handle.current_step == 3


def test_a_step_that_gradient_scaling_skips_does_not_count():
    model = net()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
    handle = approximate(model, Zero(), optimizer=optimizer)
    scaler = torch.amp.GradScaler("cpu", init_scale=4.0)
    for factor in (float("inf"), 1.0):
        optimizer.zero_grad()
        scaler.scale(model(torch.ones(2, 1, 6, 6)).sum() * factor).backward()
        scaler.step(optimizer)
        scaler.update()
    assert handle.current_step == 1


def test_zero_is_moved_by_weight_decay_and_skip_is_not():
    for estimator, moves in ((Zero(), True), (Skip(), False)):
        model = net()
        optimizer = torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.9, weight_decay=0.1)
        approximate(model, estimator, optimizer=optimizer)
        before = model[0].weight.detach().clone()
        train_step(model, optimizer)
        assert torch.equal(before, model[0].weight) != moves


def test_random_streams_are_named_by_seed_step_layer_call_and_rank():
    model = net()
    handle = approximate(model, Random(scale=1.0), seed=9)
    for step in range(2):
        model.zero_grad()
        for call in range(2):
            before = 0 if weight_grad(model, "2") is None else weight_grad(model, "2").clone()
            model(torch.ones(2, 1, 6, 6)).sum().backward()
            key = stream_key(9, step, "2" if call == 0 else "2#1")
            torch.testing.assert_close(weight_grad(model, "2") - before, normal(key, (2, 2, 3, 3)))
        handle.step()


def test_counts_equal_numbers_worked_out_by_hand():
    model = net()
    handle = approximate(model, TopOne(), schedule=EveryNthLayer(4, start=2))
    report = handle.report()
    assert (report.exact_macs, report.saved_macs_share) == (0, 0.0)
    with torch.no_grad():
        train_like = model(torch.ones(2, 1, 6, 6))
    model.eval()(torch.ones(2, 1, 6, 6))
    model.train()
    assert handle.report().exact_macs == 0
    assert train_like.shape == (2, 3)
    for _ in range(2):
        train_step(model)
        handle.step()
    # Batch 2, two steps. Layer 0: 16 positions x 2 filters x 9; layer 2: 4 x 2 x 18, of which
    # top-1 spends 1 position; the head: 8 x 3.
    exact = [4 * 16 * 18, 4 * 4 * 36, 4 * 24]
    spent = [4 * 16 * 18, 4 * 36, 4 * 24]
    report = handle.report()
    assert [row.exact_macs for row in report.layers] == exact
    assert [row.spent_macs for row in report.layers] == spent
    assert report.saved_macs_share == pytest.approx(1 - sum(spent) / sum(exact))
    assert [row.share for row in report.layers] == pytest.approx([e / sum(exact) for e in exact])
    assert [row.number for row in report.layers] == [1, 2, 0]
    assert [row.status for row in report.layers] == ["exact", "approximate", "exact"]
    handle.restore()
    train_step(model)
    assert handle.report() == report


def test_transposed_and_foreign_layers_are_counted_too():
    class Wrapped(nn.Linear):
        def forward(self, input):
            return {"out": super().forward(input)}

    class Adapted(nn.Linear):
        def forward(self, input, layer, *, output):
            return super().forward(input)

    model = nn.ModuleDict(
        {
            "up": nn.ConvTranspose2d(2, 4, 2, stride=2),
            "one": nn.Conv1d(2, 4, 3),
            "wrapped": Wrapped(2, 3),
            "adapted": Adapted(2, 3),
            "conv": nn.Conv2d(2, 2, 1),
        }
    )
    handle = approximate(model, Zero())
    model["up"](torch.ones(3, 2, 5, 5))
    model["up"](input=torch.ones(3, 2, 5, 5), output_size=(11, 11))
    model["one"](torch.ones(3, 2, 5))
    model["wrapped"](torch.ones(3, 2))
    model["adapted"](torch.ones(3, 2), layer=1, output=2)
    rows = {row.name: row.exact_macs for row in handle.report().layers}
    assert rows == {
        "up": 2 * 3 * 25 * 2 * 4 * 4,
        "one": 3 * 3 * 4 * 6,
        "wrapped": 0,
        "adapted": 3 * 2 * 3,
        "conv": 0,
    }


def test_report_prints_a_table():
    model = net()
    model[2].weight.requires_grad_(False)
    handle = approximate(model, TopOne(), where=lambda name, module: name in "02")
    train_step(model)
    lines = str(handle.report()).splitlines()
    assert lines[0].split() == ["layer", "kind", "no.", "share", "saved", "weight", "gradient"]
    assert lines[1].split() == ["0", "conv2d", "1", "92.3%", "93.8%", "TopOne(scale=1.0)"]
    assert "exact: its weight is frozen" in lines[2]
    assert "exact: not chosen by where=" in lines[3]
    assert lines[4] == "step 0: 86.5% of 624 weight-gradient multiply-adds saved"


def test_exact_layers_name_the_schedule():
    handle = approximate(net(), Zero(), schedule=EveryNthLayer(2))
    assert handle.report().layers[0].reason == "not selected by EveryNthLayer(n=2, start=2)"


def resume(saved_at, steps, estimator, schedule):
    """Parameters after ``steps`` steps, interrupted after ``saved_at`` (None: never)."""
    model = net()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01, momentum=0.9)
    handle = approximate(model, estimator, schedule=schedule, optimizer=optimizer, seed=3)
    for step in range(steps):
        if step == saved_at:
            file = io.BytesIO()
            torch.save([model.state_dict(), optimizer.state_dict(), handle.state_dict()], file)
            file.seek(0)
            saved = torch.load(file, weights_only=True)
            model = net()
            optimizer = torch.optim.SGD(model.parameters(), lr=0.01, momentum=0.9)
            handle = approximate(model, estimator, schedule=schedule, optimizer=optimizer)
            for part, state in zip((model, optimizer, handle), saved, strict=True):
                part.load_state_dict(state)
        train_step(model, optimizer)
    return list(model.parameters()), handle.report()


@pytest.mark.parametrize("estimator", [Random(), TopOne(), Zero()], ids=str)
def test_resume_continues_bit_for_bit(estimator):
    parameters, report = resume(None, 7, estimator, EveryNthStep(3))
    resumed, resumed_report = resume(4, 7, estimator, EveryNthStep(3))
    assert all(torch.equal(a, b) for a, b in zip(parameters, resumed, strict=True))
    assert report == resumed_report


@pytest.mark.parametrize(
    ("change", "text"),
    [
        (lambda s: s.pop("macs"), "not the state of an approximation"),
        (lambda s: s.update(version=99), "state of version 99; this release reads 1"),
        (lambda s: s.update(estimator="Zero()"), r"saved estimator is Zero\(\) but .* TopOne"),
        (lambda s: s.update(step=-1), r"saved step must be an integer .* got -1"),
        (lambda s: s.update(step="1"), r"saved step must be an integer .* got '1'"),
        (lambda s: s.update(seed=True), r"saved seed must be an integer .* got True"),
        (lambda s: s.update(macs=[1]), r"saved macs must map layer names to two integers, got \[1"),
        (lambda s: s["macs"].update({"2": 7}), "saved macs must map layer names to two integers"),
        (lambda s: s["macs"].pop("2"), "saved layers differ from this model's: 2"),
        (lambda s: s["schedule"].update(name="always"), "the saved schedule is .*always"),
    ],
)
def test_foreign_state_is_refused_and_changes_nothing(change, text):
    handle = approximate(net(), TopOne(), schedule=Alternate())
    handle.step()
    state = handle.state_dict()
    change(state)
    other = approximate(net(), TopOne(), schedule=Alternate())
    with pytest.raises(CheckpointError, match=text):
        other.load_state_dict(state)
    assert other.current_step == 0


def test_a_restored_handle_refuses_to_go_on():
    handle = approximate(net(), Zero())
    state = handle.state_dict()
    handle.restore()
    with pytest.raises(ConfigError, match=r"step\(\) on a restored handle"):
        handle.step()
    with pytest.raises(ConfigError, match=r"load_state_dict\(\) on a restored handle"):
        handle.load_state_dict(state)


def test_a_wrong_choice_of_a_repeating_schedule_is_refused_at_once():
    class Sometimes(Schedule):
        name = "sometimes"
        period = 3

        def select(self, step, layer):
            return None if step % 3 == 2 else layer.estimator

    model = net()
    with pytest.raises(ConfigError, match=r"returned None for layer '0'"):
        approximate(model, Zero(), schedule=Sometimes())
    assert type(model[0]) is nn.Conv2d


def test_a_schedule_that_returns_something_else_is_refused():
    class Wrong(Schedule):
        name = "wrong"

        def select(self, step, layer):
            return "zero" if step else Exact()

    model = net()
    handle = approximate(model, Exact(), schedule=Wrong())
    with pytest.raises(ConfigError, match=r"returned 'zero' for layer '0'; select\(\) must return"):
        handle.step()


def test_a_step_that_never_moves_is_said_once(monkeypatch):
    monkeypatch.setattr(plan, "UNSTEPPED_PASSES", 3)
    model = nn.Sequential(nn.Linear(2, 2))
    approximate(model, Zero(), schedule=EveryNthStep(2), where=["0"])
    x = torch.ones(1, 2)
    model(x), model(x)
    with pytest.warns(NoEffectWarning, match=r"step 0 lasts for 3 forward passes .* handle\.step"):
        model(x)
    for _ in range(4):
        model(x)


def test_a_constant_schedule_needs_no_steps(monkeypatch):
    monkeypatch.setattr(plan, "UNSTEPPED_PASSES", 1)
    model = nn.Sequential(nn.Linear(2, 2))
    approximate(model, Zero(), where=["0"])
    model(torch.ones(1, 2))  # NoEffectWarning would be an error in this test run


def test_an_optimizer_of_another_model_is_refused():
    model, other = nn.Sequential(nn.Linear(2, 2)), nn.Linear(2, 2)
    optimizer = torch.optim.SGD(other.parameters(), lr=0.1)
    with pytest.raises(ConfigError, match="holds no parameter of this model"):
        approximate(model, Zero(), optimizer=optimizer, where=["0"])
    assert type(model[0]) is nn.Linear
