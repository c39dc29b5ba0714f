"""Checks of approximate gradients that are sent compressed, each run by every rank of a world."""

import pytest
import torch
from rank_world import assert_same_on_all_ranks, gathered, mean_by_hand, wrap
from torch import nn
from torch.utils.checkpoint import checkpoint

import slimgrad
from slimgrad.core.errors import ConfigError

QUANTIZER = slimgrad.NUQSGD(bits=4)
MICRO_BATCHES = 3
APPROXIMATE_STEPS, STEPS = 3, 5
WRAPPINGS = ({}, {"gradient_as_bucket_view": True})


def network():
    torch.manual_seed(0)
    return nn.Sequential(
        nn.Conv2d(2, 16, 3), nn.ReLU(), nn.Conv2d(16, 16, 3), nn.Flatten(), nn.Linear(64, 3)
    )


def loss_of(forward, rank, step, part):
    generator = torch.Generator().manual_seed(1000 * step + 10 * part + rank)
    x = torch.randn(4, 2, 6, 6, generator=generator)
    return forward(x).square().mean()


def accumulate(model, rank, step):
    """Gradients of all micro-batches; a DDP model sends them with the last one only."""
    for part in range(MICRO_BATCHES - 1):
        if hasattr(model, "no_sync"):
            with model.no_sync():
                loss_of(model, rank, step, part).backward()
        else:
            loss_of(model, rank, step, part).backward()
    loss_of(model, rank, step, MICRO_BATCHES - 1).backward()


def start(model, estimator):
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.9)
    schedule = slimgrad.EveryNthLayer(1, start=2)
    handle = slimgrad.approximate(model, estimator, schedule=schedule, optimizer=optimizer, seed=4)
    return optimizer, handle


def _train_beside_a_lone_twin(rank, world_size, estimator, settings):
    """The exchange must send what the twin finds alone, before and after restore()."""
    model, alone = wrap(network(), **settings), network()
    (optimizer, handle), (own_optimizer, own) = start(model, estimator), start(alone, estimator)
    compression = slimgrad.compress(model, QUANTIZER, seed=5)
    for step in range(STEPS):
        if step == APPROXIMATE_STEPS:
            handle.restore()
            own.restore()
            assert [type(m) for m in model.module] == [type(m) for m in network()]
        for each in (optimizer, own_optimizer):
            each.zero_grad()
        accumulate(model, rank, step)
        accumulate(alone, rank, step)
        for (name, ours), local in zip(
            model.module.named_parameters(), alone.parameters(), strict=True
        ):
            parts = gathered(local.grad, world_size)
            expected = mean_by_hand(name, parts, QUANTIZER, step=step, seed=5)
            assert torch.equal(ours.grad, expected), (estimator, name, step)
            local.grad.copy_(expected)
        for each in (optimizer, own_optimizer):
            each.step()
    assert_same_on_all_ranks(model.parameters(), world_size)
    assert handle.current_step == APPROXIMATE_STEPS
    assert handle.report() == own.report()
    # Outputs of a sample times inputs of an output: first layer, second, head.
    calls = APPROXIMATE_STEPS * MICRO_BATCHES * 4
    exact = [256 * 18, 64 * 144, 64 * 3]
    assert [row.exact_macs for row in handle.report().layers] == [calls * e for e in exact]
    assert 0 < handle.report().spent_macs < handle.report().exact_macs
    assert compression.report().steps == STEPS
    compression.close()


def both_halves_accumulate_and_restore(rank, world_size):
    for estimator in (slimgrad.TopOne(), slimgrad.Random(scale=0.01), slimgrad.Zero()):
        for settings in WRAPPINGS:
            _train_beside_a_lone_twin(rank, world_size, estimator, settings)


def restored_layers_send_the_exact_gradient(rank, world_size):
    model, stock = wrap(network()), network()
    handle = slimgrad.approximate(model, slimgrad.TopOne())
    compression = slimgrad.compress(model, None)
    for approximate in (True, False):
        if not approximate:
            handle.restore()
        model.zero_grad()
        stock.zero_grad()
        accumulate(model, rank, step=0)
        accumulate(stock, rank, step=0)
        for ours, local in zip(model.parameters(), stock.parameters(), strict=True):
            exact = torch.stack(gathered(local.grad, world_size)).mean(0)
            # Approximate weights differ, all else is exact.
            estimated = approximate and local.dim() == 4
            assert torch.allclose(ours.grad, exact, rtol=1e-4, atol=1e-6) != estimated
    compression.close()


class MaybeCheckpointed(nn.Module):
    def __init__(self, inner, repeat):
        super().__init__()
        self.inner, self.repeat = inner, repeat

    def forward(self, x):
        return checkpoint(self.inner, x, use_reentrant=False) if self.repeat else self.inner(x)


def checkpointing_changes_neither_gradients_nor_counts(rank, world_size):
    found = []
    for repeat in (False, True):
        layers = network()
        model = wrap(nn.Sequential(MaybeCheckpointed(layers[:3], repeat), *layers[3:]))
        handle = slimgrad.approximate(model, slimgrad.Random(scale=0.1), seed=2)
        compression = slimgrad.compress(model, QUANTIZER)
        accumulate(model, rank, step=1)
        compression.close()
        found.append((handle.report(), [p.grad for p in model.parameters()]))
    (plain_report, plain), (report, checkpointed) = found
    assert report == plain_report
    assert all(torch.equal(a, b) for a, b in zip(plain, checkpointed, strict=True))


def skip_is_refused_before_the_first_step(rank, world_size):
    model = network()
    for schedule in (None, slimgrad.EveryNthStep(3)):
        with pytest.raises(ConfigError, match="leaves no gradient to reduce"):
            slimgrad.approximate(model, slimgrad.Skip(), schedule=schedule)
    assert type(model[0]) is nn.Conv2d
