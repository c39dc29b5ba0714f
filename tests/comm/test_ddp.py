"""What ``compress`` refuses and what it does on one rank; several ranks: tests/distributed."""

import inspect
import pickle

import pytest
import torch
from torch import nn
from torch.nn.parallel import DistributedDataParallel

from slimgrad.comm import ddp as ddp_module
from slimgrad.comm.ddp import compress, exchange_gradients
from slimgrad.comm.feedback import DGC, ErrorFeedback
from slimgrad.comm.policy import Policy
from slimgrad.comm.quantizers import NUQSGD, QSGDinf
from slimgrad.comm.sparsifiers import RandomK, TopK
from slimgrad.core.errors import CheckpointError, ConfigError, NoEffectWarning


@pytest.fixture
def wrapped(one_rank):
    ddp_module._warn_once_about_one_rank.cache_clear()
    return DistributedDataParallel(nn.Linear(40, 40))


def test_one_rank_does_nothing_and_says_so_once(wrapped, recwarn):
    with pytest.warns(NoEffectWarning, match="one rank only"):
        handle = compress(wrapped, NUQSGD())
    again = compress(wrapped, NUQSGD())
    assert [w for w in recwarn if issubclass(w.category, NoEffectWarning)] == []
    wrapped(torch.ones(2, 40)).sum().backward()
    assert torch.equal(wrapped.module.bias.grad, torch.full((40,), 2.0))
    assert handle.report().steps == again.report().components == 0
    assert handle.report().world_size == 1
    handle.close()


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"feedback": "error"}, "feedback must be ErrorFeedback.* got 'error'"),
        ({"codec": "fixd"}, "unknown codec 'fixd': did you mean 'fixed'"),
        ({"exchange": "all_gathr"}, "unknown exchange 'all_gathr': did you mean 'all_gather'"),
        ({"exchange": "all_reduce"}, "'all_reduce' adds exact values and cannot carry NUQSGD"),
        ({"aggregate": "median"}, "unknown aggregate 'median': did you mean 'mean'"),
        ({"aggregate": "majority", "quantizer": None}, "aggregate='majority' needs a quantizer"),
        ({"policy": "all"}, "policy must be a Policy or None, got 'all'"),
        ({"seed": 2**70}, "seed, step and rank"),
        ({"values": NUQSGD()}, "NUQSGD.* is neither; leave it out"),
        ({"policy": Policy(strength=((5, 9),))}, "NUQSGD needs bits from 2 to 8"),
        ({"quantizer": None, "feedback": DGC()}, "DGC.* has nothing to add to exact values"),
        (
            {"feedback": DGC(warm_up=3)},
            "the share that a sparsifier keeps, and NUQSGD.* keeps none",
        ),
        (
            {"quantizer": RandomK(0.1), "feedback": ErrorFeedback()},
            r"RandomK.*can err by 9 times the square of 'weight'.*RandomK\(scaled=False\)",
        ),
        (
            {
                "quantizer": QSGDinf(bits=8),
                "feedback": ErrorFeedback(),
                "policy": Policy(strength=((9, 2),)),
            },
            "can err by",
        ),
        ({"quantizer": "nuqsgd"}, "'nuqsgd' is not a quantizer"),
    ],
)
def test_wrong_arguments_are_named(wrapped, arguments, message):
    with pytest.raises(ConfigError, match=message):
        compress(wrapped, **{"quantizer": NUQSGD(), **arguments})


def test_an_unknown_exchange_lists_auto(wrapped):
    with pytest.raises(ConfigError, match="allowed: all_gather, all_reduce, auto"):
        compress(wrapped, NUQSGD(), exchange="ring")


def test_only_ddp_modules_are_taken():
    with pytest.raises(ConfigError, match="got Sequential"):
        compress(nn.Sequential(), NUQSGD())  # type: ignore[arg-type]


def test_complex_parameters_are_refused_by_name(one_rank):
    module = nn.Module()
    module.phase = nn.Parameter(torch.zeros(3, dtype=torch.cfloat))
    with pytest.raises(ConfigError, match=r"parameter 'phase' is torch\.complex64 on cpu"):
        compress(DistributedDataParallel(module), NUQSGD())


def test_state_is_plain_and_checked(wrapped, tmp_path):
    with pytest.warns(NoEffectWarning):
        handle = compress(wrapped, NUQSGD(), seed=4)
    handle.step = 12
    torch.save(handle.state_dict(), tmp_path / "state.pt")
    state = torch.load(tmp_path / "state.pt", weights_only=True)
    assert state == {"version": 1, "step": 12, "seed": 4}
    handle.step = handle.seed = 0
    handle.load_state_dict(state)
    assert (handle.step, handle.seed) == (12, 4)
    with pytest.raises(CheckpointError, match=r"the integers \['seed', 'step', 'version'\]"):
        handle.load_state_dict({"step": 1})
    with pytest.raises(CheckpointError, match="must hold the integers"):
        handle.load_state_dict({"version": 1, "seed": 0, "step": "many"})
    with pytest.raises(CheckpointError, match="version 2, this is 1"):
        handle.load_state_dict({"version": 2, "step": 1, "seed": 0})
    for wrong in ({"step": -1, "seed": 0}, {"step": 1, "seed": 2**70}):
        with pytest.raises(CheckpointError, match="cannot be continued: seed, step and rank"):
            handle.load_state_dict({"version": 1, **wrong})
    assert (handle.step, handle.seed) == (12, 4)
    assert "NUQSGD(bits=4" in repr(handle)
    assert "step=12" in repr(handle)


def test_states_with_and_without_feedback_do_not_mix(wrapped):
    with pytest.warns(NoEffectWarning):
        plain = compress(wrapped, TopK())
    remembering = compress(wrapped, TopK(), feedback=ErrorFeedback())
    state = remembering.state_dict()
    assert state["feedback"] == {"rank": 0, "world_size": 1}
    remembering.load_state_dict(state)
    with pytest.raises(CheckpointError, match='"starts" must hold matrices by parameter name'):
        remembering.load_state_dict({**state, "starts": {"weight": torch.ones(3)}})
    with pytest.raises(CheckpointError, match="taken with feedback"):
        plain.load_state_dict(state)
    with pytest.raises(CheckpointError, match="taken without feedback"):
        remembering.load_state_dict(plain.state_dict())


def test_the_hook_is_a_plain_named_function():
    assert inspect.isfunction(exchange_gradients)
    assert exchange_gradients.__qualname__ == "exchange_gradients"
    assert pickle.loads(pickle.dumps(exchange_gradients)) is exchange_gradients
