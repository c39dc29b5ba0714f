"""Checks of sparse and low-rank methods, feedback and policies, run by every rank of a world."""

import io

import pytest
import torch
from rank_world import (
    assert_same_on_all_ranks,
    descend,
    gathered,
    loss_of,
    network,
    train_and_close,
    wrap,
)

import slimgrad
from slimgrad.comm.compressor import Compressor
from slimgrad.comm.feedback import DGC, ErrorFeedback
from slimgrad.comm.feedback_memory import FeedbackMemory, merged_memory
from slimgrad.comm.lowrank import PowerSGD, SpectralAtomo
from slimgrad.comm.policy import Policy
from slimgrad.comm.quantizers import NUQSGD, QSGDinf
from slimgrad.comm.sparsifiers import Atomo, RandomK, Threshold, TopK
from slimgrad.core.errors import CheckpointError, ConfigError

RUNS = [
    (TopK(0.1), None, None),
    (TopK(0.1), NUQSGD(bits=4, bucket_size=64), ErrorFeedback()),
    (RandomK(0.2, scaled=False), None, ErrorFeedback(decay=0.9)),
    (Atomo(0.2), None, None),
    (Threshold(1.0), None, ErrorFeedback()),
    (TopK(0.02), None, DGC(clip=5.0, warm_up=2)),
    (NUQSGD(bits=4, bucket_size=64), None, ErrorFeedback()),
    (PowerSGD(2), None, ErrorFeedback()),
    (SpectralAtomo(2), QSGDinf(bits=8), None),
]


class ByHand:
    """The means the exchange must give, from the local gradients of all ranks."""

    def __init__(self, method, values, feedback, policy, world_size):
        self.policy = policy or Policy()
        self.compressors = [Compressor(method, values=values) for _ in range(world_size)]
        self.memories = [
            feedback and FeedbackMemory(feedback, r, world_size) for r in range(world_size)
        ]

    def mean(self, name, gradients, step):
        total = torch.zeros(gradients[0].numel())
        for rank, gradient in enumerate(gradients):
            compressor = self.policy.compressor_for(
                name, tuple(gradient.shape), step, self.compressors[rank]
            )
            memory, settings = self.memories[rank], {"key": name, "step": step, "rank": rank}
            if compressor is None:
                frame = Compressor(None).compress(gradient, **settings)
            elif memory is None:
                frame = compressor.compress(gradient, **settings)
            else:
                frame = memory.compress(gradient, compressor, seed=0, **settings)[0]
            total += Compressor(None).decompress(frame)
        return (total / len(gradients)).view_as(gradients[0])


def every_method_and_feedback_gives_the_mean_by_hand(rank, world_size):
    for method, values, feedback in RUNS:
        model, alone = wrap(network()), network()
        handle = slimgrad.compress(model, method, values=values, feedback=feedback)
        handle.measure_error()
        expected = ByHand(method, values, feedback, None, world_size)
        for step in range(3):
            loss_of(model, step, rank).backward()
            loss_of(alone, step, rank).backward()
            for (name, ours), local in zip(
                model.module.named_parameters(), alone.parameters(), strict=True
            ):
                mean = expected.mean(name, gathered(local.grad, world_size), step)
                assert torch.equal(ours.grad, mean), (method, name, step)
                local.grad.copy_(mean)
            descend(model)
            descend(alone)
        assert_same_on_all_ranks(model.parameters(), world_size)
        assert 0 < handle.report().relative_error < 3
        handle.close()


def layers_and_steps_of_a_policy_are_followed(rank, world_size):
    policy = Policy(
        layers=(("2.weight", Compressor(PowerSGD(2))), ("4.*", None)),
        warm_up=1,
        strength=((2, 8), (3, 2)),
    )
    model, alone = wrap(network()), network()
    handle = slimgrad.compress(model, QSGDinf(bits=4), policy=policy)
    expected = ByHand(QSGDinf(bits=4), None, None, policy, world_size)
    sizes = []
    for step in range(4):
        model.zero_grad()
        alone.zero_grad()
        before = handle.report().sent_bytes
        loss_of(model, step, rank).backward()
        loss_of(alone, step, rank).backward()
        sizes.append(handle.report().sent_bytes - before)
        for (name, ours), local in zip(
            model.module.named_parameters(), alone.parameters(), strict=True
        ):
            parts = gathered(local.grad, world_size)
            if name == "2.weight":  # the policy's compressor keeps a start for one rank only
                assert_same_on_all_ranks([ours.grad], world_size)
            else:
                assert torch.equal(ours.grad, expected.mean(name, parts, step)), (name, step)
    # A matrix of 48 x 64 at 32, 4, 8 and 2 bits, and one of 64 x 64 as it is or of rank 2.
    assert sizes[0] > 4 * (48 * 64 + 64 * 64)
    assert sizes[2] - sizes[1] == 48 * 64 // 2
    assert sizes[2] - sizes[3] == 48 * 64 * 6 // 8
    report = handle.report()
    assert 0 < report.exact_bytes < report.sent_bytes
    exact = 4 * (64 + 64 + 640 + 10) + 48 * 64 + 64 * 64
    assert report.exact_components == exact
    assert report.exact_bytes_share == pytest.approx(4 * exact / report.sent_bytes, rel=0.1)
    assert set(handle.state_dict()["starts"]) == {"2.weight"}
    handle.close()


def a_nan_passes_through_feedback_and_is_forgotten(rank, world_size):
    for feedback in (ErrorFeedback(), DGC()):
        model = wrap(network())
        handle = slimgrad.compress(model, TopK(0.1), feedback=feedback)
        loss_of(model, 0, rank).backward()
        before = handle.state_dict()["feedback"]
        model.zero_grad()
        hook = model.module[0].weight.register_hook(
            lambda gradient: gradient * (float("nan") if rank == 0 else 1.0)
        )
        loss_of(model, 1, rank).backward()
        assert not model.module[0].weight.grad.isfinite().all()
        hook.remove()
        after = handle.state_dict()["feedback"]
        for name in before:
            if name.endswith("/0.weight"):
                assert torch.equal(before[name], after[name]) == (rank == 0)
        model.zero_grad()
        loss_of(model, 2, rank).backward()
        assert all(p.grad.isfinite().all() for p in model.parameters())
        handle.close()


def a_run_with_memories_resumes_bit_for_bit(rank, world_size):
    for method, values, feedback in RUNS[1], RUNS[5], RUNS[7]:

        def start(cap, weights=None, state=None, settings=(method, values, feedback)):
            module = network()
            if weights is not None:
                module.load_state_dict(weights)
            model = torch.nn.parallel.DistributedDataParallel(module, bucket_cap_mb=cap)
            handle = slimgrad.compress(model, settings[0], values=settings[1], feedback=settings[2])
            if state is not None:
                handle.load_state_dict(state)
            return model, handle

        whole, _ = train_and_close(*start(0.01), range(6), rank)
        file = io.BytesIO()
        torch.save(train_and_close(*start(0.01), range(3), rank), file)
        file.seek(0)
        resumed, _ = train_and_close(
            *start(25, *torch.load(file, weights_only=True)), range(3, 6), rank
        )
        assert all(torch.equal(whole[name], resumed[name]) for name in whole)


def a_memory_belongs_to_its_rank_and_merged_to_all(rank, world_size):
    model = wrap(network())
    handle = slimgrad.compress(model, TopK(0.1), feedback=ErrorFeedback())
    loss_of(model, 0, rank).backward()
    state = handle.state_dict()
    vector = state["feedback"]["error/0.weight"]
    states = [
        {"rank": r, "world_size": world_size, "error/0.weight": v}
        for r, v in enumerate(gathered(vector, world_size))
    ]
    if rank != 0:
        with pytest.raises(CheckpointError, match=f"rank 0 of {world_size}, this is rank {rank}"):
            handle.load_state_dict({**state, "feedback": states[0]})
    handle.load_state_dict({**state, "feedback": merged_memory(states)})
    merged = handle.state_dict()["feedback"]["error/0.weight"]
    assert_same_on_all_ranks([merged], world_size)
    handle.close()


def different_feedback_or_values_are_refused(rank, world_size):
    odd = rank == world_size - 1
    for ours, theirs, word in [
        ({"feedback": ErrorFeedback()}, {"feedback": None}, "feedback is ErrorFeedback"),
        ({"feedback": DGC()}, {"feedback": DGC(momentum=0.5)}, "momentum=0.5"),
        ({"values": None}, {"values": NUQSGD()}, "values is None"),
        ({"policy": Policy(warm_up=1)}, {"policy": Policy(warm_up=2)}, "warm_up=2"),
    ]:
        with pytest.raises(ConfigError, match="ranks were given different") as caught:
            slimgrad.compress(wrap(network()), TopK(), **(theirs if odd else ours))
        assert word in str(caught.value)
