"""Checks that a run continued from its checkpoint ends as one that never stopped, rank by rank."""

import tempfile
from pathlib import Path

import torch
from rank_world import assert_same_on_all_ranks

from slimgrad.experiments import checkpoint
from slimgrad.experiments.config import TrainConfig
from slimgrad.experiments.data.base import ImageDataset, Split
from slimgrad.experiments.group import Group
from slimgrad.experiments.training import Training

STEPS, STOP = 5, 3
METHODS = (
    {
        "quantizer": "topk:keep=0.1",
        "values": "nuqsgd:bits=4,bucket_size=64",
        "feedback": "error:decay=0.9",
    },
    {"quantizer": "powersgd:rank=2", "feedback": "error"},
    {"quantizer": "powersgd:rank=2"},
    {"quantizer": "topk:keep=0.01", "feedback": "dgc:momentum=0.5,warm_up=4"},
    {"quantizer": {"name": "alq", "bits": 3, "refresh_at": [0, 2]}},
)
REMEMBERED = ({"feedback"}, {"feedback", "starts"}, {"starts"}, {"feedback"}, {"levels"})


def dataset():
    generator = torch.Generator().manual_seed(0)
    images = torch.randint(0, 256, (32, 3, 8, 8), dtype=torch.uint8, generator=generator)
    split = Split(images, torch.arange(32) % 2)
    return ImageDataset("noise", split, split, ("a", "b"), (0.5,) * 3, (0.3,) * 3, "none", "drawn")


def digest_after(training, steps):
    for step in steps:
        training.step(step)
    digest = training.parameters_sha256()
    training.close()
    return digest


def compressed_runs_continue_with_the_same_bits(rank, world_size):
    data, group = dataset(), Group(rank, world_size)
    for method, remembered in zip(METHODS, REMEMBERED, strict=True):
        config = TrainConfig(
            model="cnn2:width=16", batch_size=8, workers=world_size, method={"name": "m", **method}
        )
        whole = digest_after(Training(config, data, group), range(STEPS))
        stopped = Training(config, data, group)
        digest_after(stopped, range(STOP))
        state = through_a_file(stopped.state())
        own = [each["compression"] for each in state["ranks"]]
        assert [set(each) - {"version", "step", "seed"} for each in own] == [remembered] * 2

        assert_momentum_is_applied_once(state, "dgc" in method.get("feedback", ""))

        resumed = Training(config, data, group)
        resumed.load_state(state)
        assert digest_after(resumed, range(STOP, STEPS)) == whole

        for name in remembered:
            forget(own, name)
            without = Training(config, data, group)
            without.load_state(state)
            assert digest_after(without, range(STOP, STEPS)) != whole


def assert_momentum_is_applied_once(state, by_feedback):
    parameters = {name for name in state["model"] if name.endswith(("weight", "bias"))}
    by_optimizer = {name for name, kept in state["optimizer"].items() if "momentum_buffer" in kept}
    if not by_feedback:
        assert by_optimizer == parameters
        return
    labels = state["ranks"][0]["compression"]["feedback"]
    remembered = {label.partition("/")[2] for label in labels if "/" in label}
    assert by_optimizer
    assert remembered == parameters - by_optimizer


def through_a_file(state):
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder, "checkpoint")
        checkpoint.save(file, checkpoint.Checkpoint("print", STOP, state))
        return checkpoint.load(file, "print").state


def forget(states, name):
    """Take what was remembered under ``name`` from the state of every rank."""
    for state in states:
        kept = {"rank", "world_size"} & set(state[name])
        state[name] = {key: state[name][key] for key in kept}


def every_rank_keeps_a_memory_of_its_own(rank, world_size):
    config = TrainConfig(
        model="cnn2:width=16", batch_size=8, workers=world_size, method={"name": "m", **METHODS[0]}
    )
    training = Training(config, dataset(), Group(rank, world_size))
    digest_after(training, range(STOP))
    memories = [each["compression"]["feedback"] for each in training.state()["ranks"]]
    assert [memory["rank"] for memory in memories] == list(range(world_size))
    names = [name for name in memories[0] if "/" in name]
    assert names
    assert not any(torch.equal(memories[0][name], memories[1][name]) for name in names)
    assert_same_on_all_ranks([memory[name] for memory in memories for name in names], world_size)
