"""Error feedback and deep gradient compression, on one rank at a time."""

import io
import math

import numpy as np
import pytest
import torch

from slimgrad.comm.compressor import Compressor
from slimgrad.comm.feedback import DGC, ErrorFeedback, Feedback
from slimgrad.comm.feedback_memory import FeedbackMemory, merged_memory
from slimgrad.comm.lowrank import PowerSGD
from slimgrad.comm.quantizers import NUQSGD
from slimgrad.comm.sparsifiers import RandomK, TopK
from slimgrad.core.errors import CheckpointError, ConfigError

TOP = Compressor(TopK(keep=0.1))


def gradient(step, n=50, scale=1.0):
    generator = torch.Generator().manual_seed(100 + step)
    return scale * torch.randn(5, n // 5, generator=generator)


def run(feedback, compressor, gradients, memory=None, first=0, rank=0, world_size=1):
    """What is sent at each step, and the memory."""
    memory = memory or FeedbackMemory(feedback, rank, world_size)
    sent = []
    for step, g in enumerate(gradients, start=first):
        frame, _ = memory.compress(g, compressor, key="w", step=step, rank=rank, seed=0)
        sent.append(compressor.decompress(frame))
    return sent, memory


@pytest.mark.parametrize(
    "compressor",
    [
        TOP,
        Compressor(RandomK(0.2, scaled=False)),
        Compressor(PowerSGD(rank=1)),
        Compressor(NUQSGD(bits=4, bucket_size=16)),
        Compressor(TopK(0.3), values=NUQSGD(bits=3, bucket_size=16)),
    ],
    ids=repr,
)
def test_error_feedback_loses_nothing(compressor):
    gradients = [gradient(step) for step in range(30)]
    sent, memory = run(ErrorFeedback(), compressor, gradients)
    total = torch.stack([g.reshape(-1).double() for g in gradients]).sum(0)
    left = memory.state_dict()["error/w"].double()
    arrived = torch.stack([s.double() for s in sent]).sum(0)
    assert torch.allclose(arrived + left, total, atol=1e-4)
    assert float(left.norm()) > 0


def test_the_error_stays_below_its_bound():
    keep = 0.2
    delta = keep
    gradients = [gradient(step) for step in range(300)]
    longest = max(float(g.norm()) for g in gradients)
    memory = FeedbackMemory(ErrorFeedback(), 0, 1)
    for step, g in enumerate(gradients):
        run(None, Compressor(TopK(keep)), [g], memory, first=step)
        error = memory.state_dict()["error/w"]
        assert float(error.square().sum()) <= 4 * (1 - delta) / delta**2 * longest**2


def test_decay_forgets():
    compressor = Compressor(TopK(keep=0.02))
    first = torch.zeros(5, 10)
    first[0, :2] = torch.tensor([4.0, 2.0])
    _, memory = run(ErrorFeedback(decay=0.5), compressor, [first])
    assert float(memory.state_dict()["error/w"][1]) == 2.0
    sent, memory = run(None, compressor, [torch.zeros(5, 10)], memory, first=1)
    assert float(sent[0][1]) == 1.0
    assert not memory.state_dict()["error/w"].any()


def test_dgc_is_the_recurrence_of_its_description():
    rule = DGC(momentum=0.9)
    gradients = [gradient(step) for step in range(12)]
    sent, memory = run(rule, TOP, gradients)
    u = v = np.zeros(50)
    for g, arrived in zip(gradients, sent, strict=True):
        u = 0.9 * u + g.reshape(-1).double().numpy()
        v = v + u
        places = np.sort(np.argsort(-np.abs(v), kind="stable")[:5])
        expected = np.zeros(50)
        expected[places] = v[places]
        assert np.allclose(arrived.numpy(), expected, atol=1e-5)
        v[places], u[places] = 0, 0
    state = memory.state_dict()
    assert np.allclose(state["velocity/w"].numpy(), v, atol=1e-5)
    assert np.allclose(state["momentum/w"].numpy(), u, atol=1e-5)


def test_dgc_with_everything_sent_is_sgd_and_with_nothing_sent_is_momentum():
    gradients = [gradient(step) for step in range(5)]
    sent, _ = run(DGC(), Compressor(TopK(keep=1.0)), gradients)
    assert all(torch.equal(s, g.view(-1)) for s, g in zip(sent, gradients, strict=True))
    one, memory = run(DGC(momentum=0.5), Compressor(TopK(keep=0.02)), gradients)
    kept = torch.stack(one).abs().sum(0) > 0
    u = v = torch.zeros(50)
    for g in gradients:
        u = 0.5 * u + g.view(-1)
        v = v + u
    assert torch.allclose(memory.state_dict()["velocity/w"][~kept], v[~kept], atol=1e-5)


def test_dgc_clips_each_tensor_by_the_share_of_a_rank():
    sent, _ = run(DGC(clip=6.0), Compressor(TopK(keep=1.0)), [gradient(0, scale=9)], world_size=9)
    assert float(sent[0].norm()) == pytest.approx(2.0, rel=1e-5)
    small = gradient(0, scale=1e-3)
    sent, _ = run(DGC(clip=6.0), Compressor(TopK(keep=1.0)), [small], world_size=9)
    assert torch.equal(sent[0], small.view(-1))


def test_dgc_warms_up_from_a_quarter():
    rule = DGC(warm_up=4)
    sent, _ = run(rule, Compressor(TopK(keep=0.02)), [gradient(step, 1000) for step in range(6)])
    counts = [int((s != 0).sum()) for s in sent]
    assert counts == [round(1000 * 0.25 ** (1 - i / 4) * 0.02 ** (i / 4)) for i in range(4)] + [
        20,
        20,
    ]
    assert rule.share_at(0, 0.5) == 0.5
    assert ErrorFeedback().share_at(0, 0.01) == 0.01


@pytest.mark.parametrize("rule", [ErrorFeedback(), DGC(clip=3.0)], ids=repr)
@pytest.mark.parametrize("bad", [math.nan, math.inf, -math.inf])
def test_what_is_not_finite_passes_through_and_leaves_the_memory(rule, bad):
    _, memory = run(rule, TOP, [gradient(step) for step in range(3)])
    before = memory.state_dict()
    poisoned = gradient(3)
    poisoned[2, 3] = bad
    sent, _ = run(None, TOP, [poisoned], memory, first=3)
    assert not sent[0].isfinite().all()
    after = memory.state_dict()
    assert all(torch.equal(torch.as_tensor(before[k]), torch.as_tensor(after[k])) for k in before)


def test_a_sum_that_overflows_leaves_the_memory():
    compressor = Compressor(TopK(keep=0.02))
    huge = torch.full((5, 10), 3e38)
    _, memory = run(ErrorFeedback(), compressor, [huge])
    before = memory.state_dict()["error/w"]
    sent, _ = run(None, compressor, [huge], memory, first=1)
    assert not sent[0].isfinite().all()
    assert torch.equal(memory.state_dict()["error/w"], before)
    sent, _ = run(None, compressor, [-huge], memory, first=2)
    assert sent[0].isfinite().all()


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16, torch.float64])
def test_other_dtypes_are_remembered_in_float32(dtype):
    gradients = [gradient(step).to(dtype) for step in range(4)]
    sent, memory = run(ErrorFeedback(), TOP, gradients)
    total = sum(g.view(-1).double() for g in gradients)
    left = memory.state_dict()["error/w"]
    assert left.dtype == torch.float32
    assert torch.allclose(sum(s.double() for s in sent) + left, total, atol=1e-4)


@pytest.mark.parametrize("rule", [ErrorFeedback(decay=0.9), DGC()], ids=repr)
def test_a_saved_memory_continues_bit_for_bit(rule):
    gradients = [gradient(step) for step in range(8)]
    whole, _ = run(rule, TOP, gradients, rank=1, world_size=3)
    _, memory = run(rule, TOP, gradients[:4], rank=1, world_size=3)
    file = io.BytesIO()
    torch.save(memory.state_dict(), file)
    file.seek(0)
    resumed = FeedbackMemory(rule, 1, 3)
    resumed.load_state_dict(torch.load(file, weights_only=True))
    rest, _ = run(rule, TOP, gradients[4:], resumed, first=4, rank=1)
    assert all(torch.equal(a, b) for a, b in zip(whole[4:], rest, strict=True))


def test_a_saved_memory_is_a_copy():
    _, memory = run(ErrorFeedback(), TOP, [gradient(0)])
    state = memory.state_dict()
    run(None, TOP, [gradient(1)], memory, first=1)
    assert not torch.equal(state["error/w"], memory.state_dict()["error/w"])
    memory.load_state_dict(state)
    memory.state_dict()["error/w"].zero_()
    assert torch.equal(memory.state_dict()["error/w"], state["error/w"])


def test_a_merged_memory_keeps_what_is_left_to_send_whatever_the_world_size():
    states = []
    for rank in range(3):
        _, memory = run(ErrorFeedback(), TOP, [gradient(10 * rank)], rank=rank, world_size=3)
        states.append(memory.state_dict())
    del states[1]["error/w"]
    left = (states[0]["error/w"] + states[2]["error/w"]) / 3
    merged = merged_memory(states[::-1])
    for rank in range(2):
        memory = FeedbackMemory(ErrorFeedback(), rank, 2)
        memory.load_state_dict(merged)
        assert torch.allclose(memory.state_dict()["error/w"], left)
        assert memory.state_dict()["rank"] == rank
    with pytest.raises(CheckpointError, match="takes the state of every rank once"):
        merged_memory(states[:2])
    with pytest.raises(CheckpointError, match="every rank once"):
        merged_memory([])


def test_memories_that_do_not_fit_are_refused():
    _, memory = run(ErrorFeedback(), TOP, [gradient(0)], rank=0, world_size=2)
    state = memory.state_dict()
    with pytest.raises(CheckpointError, match=r"that of rank 0 of 2, this is rank 1 of 2; load"):
        FeedbackMemory(ErrorFeedback(), 1, 2).load_state_dict(state)
    with pytest.raises(CheckpointError, match=r"rank 0 of 2, this is rank 0 of 4"):
        FeedbackMemory(ErrorFeedback(), 0, 4).load_state_dict(state)
    with pytest.raises(CheckpointError, match=r"'error/w' is no memory of DGC"):
        FeedbackMemory(DGC(), 0, 2).load_state_dict(state)
    with pytest.raises(CheckpointError, match=r"'error/w' is no memory of Error"):
        FeedbackMemory(ErrorFeedback(), 0, 2).load_state_dict({**state, "error/w": 3})
    half = {"rank": 0, "world_size": 2, "momentum/w": torch.zeros(50)}
    with pytest.raises(CheckpointError, match=r"'w' has only \['momentum'\] of \['momentum', 'vel"):
        FeedbackMemory(DGC(), 0, 2).load_state_dict(half)
    memory.load_state_dict({**state, "error/w": torch.zeros(49)})
    with pytest.raises(CheckpointError, match="has 49 components, its gradient 50"):
        run(None, TOP, [gradient(1)], memory)


@pytest.mark.parametrize(
    ("kind", "settings", "message"),
    [
        (ErrorFeedback, {"decay": 0}, "decay must be above 0 and at most 1, got 0"),
        (ErrorFeedback, {"decay": 1.1}, "got 1.1"),
        (ErrorFeedback, {"decay": "1"}, "decay must be a number, got '1'"),
        (ErrorFeedback, {"decay": True}, "decay must be a number"),
        (DGC, {"momentum": 1.0}, "momentum must be from 0 to below 1, got 1.0"),
        (DGC, {"momentum": -0.1}, "got -0.1"),
        (DGC, {"momentum": None}, "momentum must be a number, got None"),
        (DGC, {"clip": 0}, "clip must be a norm > 0 or None, got 0"),
        (DGC, {"clip": math.inf}, "got inf"),
        (DGC, {"clip": "2"}, "got '2'"),
        (DGC, {"warm_up": -1}, "warm_up must be a number of steps >= 0, got -1"),
        (DGC, {"warm_up": 1.5}, r"got 1\.5"),
    ],
)
def test_wrong_settings_are_named(kind, settings, message):
    with pytest.raises(ConfigError, match=message):
        kind(**settings)


def test_feedback_is_abstract():
    with pytest.raises(TypeError, match="abstract"):
        Feedback()  # type: ignore[abstract]
