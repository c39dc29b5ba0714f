"""Checks of votes and of levels that adapt, each run by every rank of a world."""

import io

import pytest
import torch
from rank_world import descend, gathered, loss_of, mean_by_hand, network, wrap

import slimgrad
from slimgrad.comm.compressor import Compressor
from slimgrad.comm.majority import majority_vote
from slimgrad.comm.policy import Policy
from slimgrad.comm.quantizers import ALQ, AMQ, EFSign, Natural, NoZero, Sign, TernGrad
from slimgrad.core.errors import CheckpointError, ConfigError


def local_gradients(step, rank):
    alone = network()
    loss_of(alone, step, rank).backward()
    return [parameter.grad for parameter in alone.parameters()]


def every_quantizer_gives_the_mean_by_hand(rank, world_size):
    for quantizer in (TernGrad(clip=2.5), Natural(), NoZero(bits=3), Sign(), EFSign()):
        model = wrap(network())
        handle = slimgrad.compress(model, quantizer)
        loss_of(model, 0, rank).backward()
        for (name, ours), local in zip(
            model.module.named_parameters(), local_gradients(0, rank), strict=True
        ):
            parts = gathered(local, world_size)
            assert torch.equal(ours.grad, mean_by_hand(name, parts, quantizer, step=0)), name
        handle.close()


def signs_are_put_to_the_vote(rank, world_size):
    model, policy = wrap(network()), Policy()
    handle = slimgrad.compress(model, Sign(), aggregate="majority")
    loss_of(model, 0, rank).backward()
    for (name, ours), local in zip(
        model.module.named_parameters(), local_gradients(0, rank), strict=True
    ):
        parts = gathered(local, world_size)
        if policy.is_exact(name, tuple(local.shape)):
            torch.testing.assert_close(ours.grad, torch.stack(parts).mean(0))
            continue
        compressor = Compressor(Sign())
        frames = [compressor.compress(part, key=name, step=0) for part in parts]
        assert torch.equal(ours.grad.flatten(), majority_vote(frames))
        assert set(ours.grad.unique().tolist()) <= {-1.0, 0.0, 1.0}
    handle.close()
    with pytest.raises(ConfigError, match="different compression settings: aggregate is"):
        slimgrad.compress(wrap(network()), Sign(), aggregate=["mean", "majority"][rank % 2])


def all_ranks_choose_the_levels_from_the_counts_of_all(rank, world_size):
    for quantizer in (ALQ(bits=3, refresh_at=(1,)), AMQ(bits=3, refresh_at=(1,), norm="linf")):
        model = wrap(network())
        handle = slimgrad.compress(model, quantizer)
        loss_of(model, 0, rank).backward()
        assert handle.state_dict()["levels"] == {}
        model.zero_grad()
        loss_of(model, 1, rank).backward()
        names = [name for name, _ in model.module.named_parameters()]
        alone = type(quantizer)(bits=3, norm=quantizer.norm)
        levels = handle.state_dict()["levels"]
        assert set(levels) == {"0.weight", "2.weight"}
        for name, local in zip(names, local_gradients(1, rank), strict=True):
            if name not in levels:
                continue
            parts = gathered(local, world_size)
            alone.refresh(name, sum(alone.counts(part.flatten()) for part in parts))
            assert torch.equal(levels[name], alone.state_dict()[name])
            expected = mean_by_hand(name, parts, alone, step=1)
            assert torch.equal(dict(model.module.named_parameters())[name].grad, expected)
        handle.close()


def levels_are_part_of_the_state(rank, world_size):
    def train(module, steps, state=None):
        model = wrap(module)
        handle = slimgrad.compress(model, ALQ(bits=3, refresh_at=(1, 4)))
        if state is not None:
            handle.load_state_dict(state)
        for step in steps:
            loss_of(model, step, rank).backward()
            descend(model)
        state = handle.state_dict()
        handle.close()
        return model.module.state_dict(), state

    whole, _ = train(network(), range(6))
    file = io.BytesIO()
    torch.save(train(network(), range(3)), file)
    file.seek(0)
    weights, state = torch.load(file, weights_only=True)
    module = network()
    module.load_state_dict(weights)
    resumed, _ = train(module, range(3, 6), state)
    assert all(torch.equal(whole[name], resumed[name]) for name in whole)

    handle = slimgrad.compress(wrap(network()), slimgrad.NUQSGD())
    with pytest.raises(CheckpointError, match="belongs to a quantizer that adapts, this is"):
        handle.load_state_dict(state)
    handle.close()
