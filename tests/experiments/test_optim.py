from __future__ import annotations

import pytest
import torch
from torch import nn

from slimgrad.experiments.config import OptimizerConfig
from slimgrad.experiments.optim import learning_rate, make_optimizer, set_learning_rate


def rates(config: OptimizerConfig, steps: int = 100, steps_per_epoch: int = 10) -> list[float]:
    return [learning_rate(config, step, steps, steps_per_epoch) for step in range(steps)]


@pytest.mark.parametrize(
    ("without", "moved"),
    [((), [0.9, 0.9]), (["bias"], [0.9, 0.0]), (["bias", "weight"], [0.0] * 2)],
)
def test_sgd_leaves_out_the_momentum_it_is_told_to(without: list[str], moved: list[float]):
    model = nn.Linear(2, 2)
    optimizer = make_optimizer(OptimizerConfig(), model, without_momentum=without)
    found = {p: group["momentum"] for group in optimizer.param_groups for p in group["params"]}
    assert [found[model.weight], found[model.bias]] == moved


def test_constant_stays_and_cosine_falls_to_nearly_zero():
    assert set(rates(OptimizerConfig(lr=0.3, lr_schedule="constant"))) == {0.3}
    cosine = rates(OptimizerConfig(lr=0.3))
    assert cosine[0] == 0.3
    assert cosine[50] == pytest.approx(0.15)
    assert cosine == sorted(cosine, reverse=True)
    assert 0 < cosine[-1] < 0.001


@pytest.mark.parametrize("kind", ["cosine", "constant"])
def test_warmup_rises_to_the_highest_rate(kind):
    warm = rates(OptimizerConfig(lr=1.0, lr_schedule=kind, warmup_epochs=2))
    assert warm[:20] == sorted(warm[:20])
    assert warm[0] == pytest.approx(1 / 21)
    assert warm[20] == max(warm) == 1.0


def test_one_cycle_rises_then_falls_to_nearly_zero():
    cycle = rates(OptimizerConfig(lr=0.4, lr_schedule="one_cycle"))
    top = cycle.index(max(cycle))
    assert top == 30
    assert cycle[top] == pytest.approx(0.4)
    assert cycle[:top] == sorted(cycle[:top])
    assert cycle[top:] == sorted(cycle[top:], reverse=True)
    assert 0 < cycle[-1] < 0.001


@pytest.mark.parametrize("kind", ["cosine", "constant", "one_cycle"])
def test_a_run_of_one_step_has_a_rate(kind):
    rate = learning_rate(OptimizerConfig(lr=0.1, lr_schedule=kind), 0, 1, 1)
    assert 0 < rate <= 0.1


@pytest.mark.parametrize("name", ["sgd", "adam"])
def test_the_optimizer_equals_the_plain_one_in_any_layout(name):
    def network() -> nn.Conv2d:
        layer = nn.Conv2d(3, 4, 3).to(memory_format=torch.channels_last)  # pyright: ignore[reportCallIssue]
        with torch.no_grad():
            for parameter in layer.parameters():
                parameter.copy_(torch.arange(float(parameter.numel())).view_as(parameter) / 100)
        return layer

    config = OptimizerConfig(name=name, lr=0.05, weight_decay=0.01)
    ours, theirs = network(), network()
    optimizer = make_optimizer(config, ours)
    if name == "sgd":
        plain = torch.optim.SGD(
            theirs.parameters(), lr=0.05, momentum=0.9, weight_decay=0.01, foreach=False
        )
    else:
        plain = torch.optim.Adam(theirs.parameters(), lr=0.05, weight_decay=0.01, foreach=False)
    image = torch.linspace(-1, 1, 75).view(1, 3, 5, 5)
    for model, stepper in ((ours, optimizer), (theirs, plain)):
        for _ in range(5):
            stepper.zero_grad()
            model(image).square().sum().backward()
            stepper.step()
    assert torch.allclose(ours.weight, theirs.weight, rtol=1e-5, atol=1e-6)


def test_the_rate_of_a_step_can_be_set():
    optimizer = make_optimizer(OptimizerConfig(lr=0.5), nn.Linear(1, 1))
    set_learning_rate(optimizer, 0.25)
    assert [group["lr"] for group in optimizer.param_groups] == [0.25]
