"""The selection of the largest magnitudes, on every backend and instruction set."""

from __future__ import annotations

import pytest
import torch

from slimgrad.core.errors import ConfigError
from slimgrad.kernels import backend, topk_places
from slimgrad.kernels.backend import use_backend

ISAS = backend.usable_isas()
BACKENDS = [("reference", "auto"), *(("native", isa) for isa in ISAS)]
SIZES = [1, 2, 15, 16, 17, 1000, 65535, 65536, 65537, 200_003]


def vectors(n):
    generator = torch.Generator().manual_seed(n)
    normal = torch.randn(n, generator=generator)
    yield "normal", normal
    yield "few values", torch.randint(-3, 4, (n,), generator=generator).float()
    yield "equal", torch.full((n,), -2.0)
    yield "zero", torch.zeros(n)
    yield "denormal", normal * 1e-42
    yield "heavy tail", normal / torch.rand(n, generator=generator)
    # A sample of some groups of sixteen misses this altogether, or sees nothing else.
    hidden = torch.zeros(n)
    hidden[n // 2 : n // 2 + n // 20 + 1] = 5.0
    yield "hidden", hidden
    striped = torch.zeros(n)
    striped.view(-1)[: n // 512 * 512].view(-1, 512)[:, :16] = 1.0
    yield "striped", striped
    special = normal.clone()
    special[:: max(1, n // 7)] = torch.inf
    special[n // 3] = torch.nan
    special[n // 2] = -torch.nan
    yield "not finite", special


def selections(n):
    return sorted({0, 1, n // 1000, n // 100, n // 3, n - 1, n})


@pytest.mark.skipif(not ISAS, reason="the C++ kernels are not built here")
@pytest.mark.parametrize("n", SIZES)
def test_every_instruction_set_selects_what_the_reference_does(n):
    for name, vector in vectors(n):
        for k in selections(n):
            with use_backend("reference"):
                expected = topk_places(vector, k)
            for isa in ISAS:
                with use_backend("native", isa):
                    assert torch.equal(topk_places(vector, k), expected), (name, k, isa)


@pytest.mark.parametrize(("name", "isa"), BACKENDS)
def test_no_component_left_out_is_larger_or_equal_and_earlier(name, isa):
    vector = torch.randint(-50, 51, (4000,), generator=torch.Generator().manual_seed(3)).float()
    with use_backend(name, isa):
        places = topk_places(vector, 700)
    assert places.dtype == torch.int64
    assert len(places) == 700
    assert bool((places[1:] > places[:-1]).all())
    kept = torch.zeros(4000, dtype=torch.bool)
    kept[places] = True
    smallest = vector[kept].abs().min()
    assert not bool((vector[~kept].abs() > smallest).any())
    last_tie = int((kept & (vector.abs() == smallest)).nonzero().max())
    assert not bool((~kept & (vector.abs() == smallest))[:last_tie].any())


@pytest.mark.parametrize(("name", "isa"), BACKENDS)
def test_layouts_and_empty_vectors(name, isa):
    vector = torch.randn(50, 2, generator=torch.Generator().manual_seed(4))
    with use_backend(name, isa):
        strided = topk_places(vector[:, 0], 5)
        assert torch.equal(strided, topk_places(vector[:, 0].clone(), 5))
        assert topk_places(torch.empty(0), 0).numel() == 0
        unaligned = torch.randn(70_001)[1:]
        assert torch.equal(topk_places(unaligned, 90), topk_places(unaligned.clone(), 90))


@pytest.mark.parametrize("k", [-1, 4, 1.0, True, None])
def test_wrong_k_is_named(k):
    with pytest.raises(ConfigError, match="k must be an integer from 0 to 3"):
        topk_places(torch.ones(3), k)


def test_wrong_vectors_are_named():
    with pytest.raises(ConfigError, match="vector must be flat"):
        topk_places(torch.ones(3, 3), 1)
    with pytest.raises(ConfigError, match=r"torch\.float64"):
        topk_places(torch.ones(3, dtype=torch.float64), 1)
    huge = torch.ones(1).expand(2**32)
    with pytest.raises(ConfigError, match="has 4294967296 components"):
        topk_places(huge, 1)
