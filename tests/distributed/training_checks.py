"""Checks of compressed training, each run by every rank of a world."""

import copy
import io

import pytest
import torch
from rank_world import (
    assert_same_on_all_ranks,
    descend,
    gathered,
    loss_of,
    mean_by_hand,
    network,
    train_and_close,
    wrap,
)
from torch import nn

import slimgrad
from slimgrad.comm.policy import Policy


def compression_off_equals_ddp_to_the_last_bit(rank, world_size):
    for settings in ({}, {"gradient_as_bucket_view": True}, {"static_graph": True}):
        plain, counted = wrap(network(), **settings), wrap(network(), **settings)
        handle = slimgrad.compress(counted, None)
        for step in range(4):
            for model in (plain, counted):
                loss_of(model, step, rank).backward()
            for ours, theirs in zip(counted.parameters(), plain.parameters(), strict=True):
                assert torch.equal(ours.grad, theirs.grad)
            for model in (plain, counted):
                descend(model)
        report = handle.report()
        assert report.steps == 4
        assert report.bits_per_component == 32
        assert report.components == 4 * sum(p.numel() for p in plain.parameters())
        assert report.exact_components == report.components
        handle.close()


def fifty_steps_leave_all_ranks_identical(rank, world_size):
    model = wrap(network())
    handle = slimgrad.compress(model, slimgrad.NUQSGD(bits=4), seed=1)
    handle.measure_error()
    losses = []
    for step in range(50):
        loss = loss_of(model, step, rank, rows=64)
        loss.backward()
        descend(model, lr=0.3)
        losses.append(float(loss))
    assert_same_on_all_ranks(model.parameters(), world_size)
    assert sum(losses[-5:]) < 0.5 * sum(losses[:5])
    report = handle.report()
    assert report.steps == handle.step == 50
    assert report.world_size == world_size
    assert 4.0 < report.bits_per_component < 9.0
    assert report.exact_components == 50 * (64 + 64 + 640 + 10)
    assert 0.01 < report.relative_error < slimgrad.NUQSGD(bits=4).variance_bound(512) ** 0.5
    assert report.codec_seconds > 0
    assert report.wire_seconds > 0
    handle.close()


def mean_of_decoded_frames_equals_the_one_by_hand(rank, world_size):
    # Several steps, so that DDP rebuilds its buckets in between.
    cases = [
        (slimgrad.NUQSGD(bits=3, bucket_size=100), {}, None),
        (slimgrad.QSGD(bits=5), {"gradient_as_bucket_view": True}, Policy(min_numel=10)),
        (slimgrad.QSGDinf(bits=2), {"static_graph": True}, Policy(exact_names=("0.*",))),
        (slimgrad.NUQSGD(ratio=0.3), {"find_unused_parameters": True}, None),
    ]
    for quantizer, settings, policy in cases:
        model = wrap(network(), **settings)
        handle = slimgrad.compress(model, quantizer, policy=policy, seed=7)
        for step in range(3):
            model.zero_grad()
            loss_of(model, step, rank).backward()
            alone = network()
            loss_of(alone, step, rank).backward()
            for (name, ours), local in zip(
                model.module.named_parameters(), alone.parameters(), strict=True
            ):
                parts = gathered(local.grad, world_size)
                expected = mean_by_hand(name, parts, quantizer, step=step, seed=7, policy=policy)
                assert torch.equal(ours.grad, expected), (name, step)
        handle.close()


def accumulation_sends_the_sum_once(rank, world_size):
    for settings in ({}, {"gradient_as_bucket_view": True}):
        model, alone = wrap(network(), **settings), network()
        handle = slimgrad.compress(model, slimgrad.QSGDinf(bits=8))
        for step in range(2):
            model.zero_grad()
            alone.zero_grad()
            with model.no_sync():
                loss_of(model, 10 + step, rank).backward()
            loss_of(model, 20 + step, rank).backward()
            loss_of(alone, 10 + step, rank).backward()
            loss_of(alone, 20 + step, rank).backward()
            for (name, ours), local in zip(
                model.module.named_parameters(), alone.parameters(), strict=True
            ):
                parts = gathered(local.grad, world_size)
                expected = mean_by_hand(name, parts, slimgrad.QSGDinf(bits=8), step=step)
                assert torch.equal(ours.grad, expected)
        assert handle.step == handle.report().steps == 2
        handle.close()


class Fork(nn.Module):
    """Uses one of two branches; the third parameter is used by nobody."""

    def __init__(self):
        super().__init__()
        torch.manual_seed(3)
        self.left, self.right = nn.Linear(48, 40), nn.Linear(48, 40)
        self.idle = nn.Parameter(torch.ones(50, 50))

    def forward(self, x, use_left):
        return (self.left if use_left else self.right)(x)


def unused_parameters_work(rank, world_size):
    model = wrap(Fork(), find_unused_parameters=True)
    handle = slimgrad.compress(model, slimgrad.NUQSGD(bits=4))
    for step in range(3):
        model.zero_grad()
        model(torch.ones(2, 48) + rank, use_left=rank == 0 or step == 0).sum().backward()
        assert model.module.idle.grad is None
        used = model.module.left.weight
        assert_same_on_all_ranks([used.grad], world_size)
        assert bool(used.grad.isfinite().all())
        right = model.module.right.weight.grad
        assert (right is None) == (step == 0)
        if right is not None:
            assert_same_on_all_ranks([right], world_size)
    assert handle.report().steps == 3
    handle.close()


class Mixed(nn.Module):
    """Four dtypes, an empty parameter, a single number, and channels-last weights."""

    def __init__(self):
        super().__init__()
        torch.manual_seed(4)
        self.weights = nn.ParameterDict(
            {
                "f32": torch.randn(40, 40),
                "bf16": torch.randn(40, 40).bfloat16(),
                "f16": torch.randn(40, 40).half(),
                "f64": torch.randn(40, 40).double(),
                "f64_bias": torch.randn(40).double(),
                "f16_bias": torch.randn(40).half(),
                "one": torch.tensor([2.0]),
                "scalar": torch.tensor(3.0),
                "empty": torch.empty(0, 5),
            }
        )
        self.conv = nn.Conv2d(8, 16, 3).to(memory_format=torch.channels_last)

    def forward(self, scale):
        total = self.conv(scale * torch.ones(1, 8, 5, 5)).sum()
        for weight in self.weights.values():
            total = total + (scale.to(weight.dtype) * weight.square()).sum().float()
        return total


def dtypes_shapes_and_layouts_work(rank, world_size):
    model = wrap(Mixed())
    handle = slimgrad.compress(model, slimgrad.QSGDinf(bits=8))
    for _ in range(2):
        model.zero_grad()
        model(torch.tensor(1.0 + rank)).backward()
    mean_scale = sum(1.0 + r for r in range(world_size)) / world_size
    for name, weight in model.module.weights.items():
        assert weight.grad.dtype == weight.dtype
        assert weight.grad.shape == weight.shape
        exact = 2 * mean_scale * weight.detach().double()
        # 8 bits: a step is at most max / 127 for each rank; bfloat16 itself rounds to 2**-8.
        step = float(exact.abs().max()) / 127 * 4 / 3 if weight.numel() else 0.0
        tolerance = 1e-12 if name == "f64_bias" else step * 1.1
        assert bool(((weight.grad.double() - exact).abs() <= tolerance).all()), name
    assert torch.allclose(
        model.module.conv.weight.grad, torch.full((16, 8, 3, 3), 9 * mean_scale), rtol=0.02
    )
    gradients = [p.grad.double() for p in model.parameters() if p.numel()]
    assert_same_on_all_ranks(gradients, world_size)
    handle.close()


def a_nan_on_one_rank_reaches_all_ranks(rank, world_size):
    for value in (float("nan"), float("inf")):
        model = wrap(network())
        handle = slimgrad.compress(model, slimgrad.NUQSGD(bits=4, bucket_size=48))
        loss_of(model, 0, rank).backward()

        def poison(gradient, value=value):
            gradient = gradient.clone()
            gradient.view(-1)[5] = value
            return gradient

        model.zero_grad()
        if rank == world_size - 1:
            model.module[0].weight.register_hook(poison)
            model.module[4].bias.register_hook(poison)
        loss_of(model, 1, rank).backward()
        weight, bias = model.module[0].weight.grad, model.module[4].bias.grad
        # The compressed tensor loses the bucket (here one row), the exact one the component.
        assert weight[0].isnan().all()
        assert weight[1:].isfinite().all()
        assert not bias[5].isfinite()
        assert int((~bias.isfinite()).sum()) == 1
        model.zero_grad()
        model.module[0].weight._backward_hooks.clear() if rank == world_size - 1 else None
        model.module[4].bias._backward_hooks.clear() if rank == world_size - 1 else None
        loss_of(model, 2, rank).backward()
        assert all(p.grad.isfinite().all() for p in model.parameters())
        handle.close()


def a_resumed_run_continues_bit_for_bit(rank, world_size):
    def start(weights=None, state=None, **settings):
        module = network()
        if weights is not None:
            module.load_state_dict(weights)
        model = torch.nn.parallel.DistributedDataParallel(module, **settings)
        # The seed travels with the state.
        handle = slimgrad.compress(model, slimgrad.NUQSGD(bits=3), seed=0 if state else 11)
        if state is not None:
            handle.load_state_dict(state)
        return model, handle

    whole, _ = train_and_close(*start(bucket_cap_mb=0.01), range(6), rank)
    file = io.BytesIO()
    torch.save(train_and_close(*start(bucket_cap_mb=0.01), range(3), rank), file)
    file.seek(0)
    weights, state = torch.load(file, weights_only=True)
    # Other buckets: streams are keyed by names, so nothing changes.
    resumed, _ = train_and_close(*start(weights, state, bucket_cap_mb=25), range(3, 6), rank)
    assert all(torch.equal(whole[name], resumed[name]) for name in whole)


def sparse_gradients_go_exact(rank, world_size):
    module = nn.Sequential(nn.Embedding(30, 4, sparse=True), nn.Flatten(), nn.Linear(8, 200))
    torch.manual_seed(0)
    for parameter in module.parameters():
        nn.init.normal_(parameter)
    alone = copy.deepcopy(module)
    model = wrap(module)
    handle = slimgrad.compress(model, slimgrad.QSGD(bits=4))
    tokens = torch.tensor([[rank, 5], [7, rank + 20]])
    model(tokens).sum().backward()
    alone(tokens).sum().backward()
    parts = gathered(alone[0].weight.grad.to_dense(), world_size)
    assert model.module[0].weight.grad.is_sparse
    torch.testing.assert_close(model.module[0].weight.grad.to_dense(), sum(parts) / world_size)
    assert handle.report().exact_components >= 4 * 4
    handle.close()


def bytes_are_counted_to_the_last_one(rank, world_size):
    model = wrap(nn.Linear(64, 32))
    handle = slimgrad.compress(model, slimgrad.NUQSGD(bits=4, bucket_size=512))
    model(torch.ones(1, 64)).sum().backward()
    report = handle.report()
    weight_bytes, bias_bytes = 64 + 4 * 4 + 4 * 256, 64 + 4 * 32
    assert report.sent_bytes == weight_bytes + bias_bytes
    assert report.components == 64 * 32 + 32
    assert report.exact_share == 32 / (64 * 32 + 32)
    assert report.bits_per_component == pytest.approx(8 * (weight_bytes + bias_bytes) / 2080)
    handle.close()
