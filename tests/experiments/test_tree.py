from __future__ import annotations

import json
import math

import torch

from slimgrad.experiments.tree import flatten, unflatten


def test_nested_state_survives():
    state = {
        "a": {"weight": torch.arange(3), 0: [torch.tensor(1.5), "text", None, True]},
        "pair": (1, torch.zeros(0), ()),
        "none": None,
        "number": 0.1,
        "infinite": math.inf,
    }
    tensors, rest = flatten(state)
    assert set(tensors) == {"a/weight", "a/0/0", "pair/1"}
    json.loads(rest)
    again = unflatten(tensors, rest)
    assert torch.equal(again["a"]["weight"], state["a"]["weight"])
    assert again["a"][0][1:] == ["text", None, True]
    assert again["pair"][0] == 1
    assert again["pair"][2] == ()
    assert again["number"] == 0.1
    assert again["infinite"] == math.inf


def test_a_lone_tensor_survives():
    tensors, rest = flatten(torch.ones(2))
    assert torch.equal(unflatten(tensors, rest), torch.ones(2))
