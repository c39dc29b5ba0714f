import copy
import math
import pickle

import numpy as np
import pytest
import torch

from slimgrad.comm.compressor import Compressor
from slimgrad.comm.quantizers import ALQ, AMQ, NUQSGD, Levels
from slimgrad.core.errors import CheckpointError, ConfigError
from slimgrad.theory import MagnitudeDensity, expected_variance

CLASSES = [ALQ, AMQ]


def laplace(n=40_000, seed=3):
    u = torch.rand(n, generator=torch.Generator().manual_seed(seed), dtype=torch.float64) - 0.5
    return (-u.sign() * torch.log1p(-2 * u.abs())).float()


def relative_error(quantizer, vector, key="w"):
    compressor = Compressor(quantizer)
    got = compressor.decompress(compressor.compress(vector, key=key, step=0)).double()
    return float((got - vector).square().sum() / vector.double().square().sum())


@pytest.mark.parametrize("cls", CLASSES)
@pytest.mark.parametrize("norm", ["l2", "linf"])
def test_fresh_levels_lower_the_error_of_their_tensor_and_of_no_other(cls, norm):
    quantizer, v = cls(bits=3, bucket_size=1024, norm=norm), laplace()
    start = relative_error(quantizer, v)
    quantizer.refresh("w", quantizer.counts(v))
    assert relative_error(quantizer, v) < 0.8 * start
    assert relative_error(quantizer, v, key="another") == pytest.approx(start, rel=0.1)


@pytest.mark.parametrize("cls", CLASSES)
def test_counts_are_the_density_of_theory_up_to_the_bins(cls):
    quantizer, v = cls(bits=4, bucket_size=512), laplace(5000)
    exact = MagnitudeDensity.from_vector(v.numpy(), 512)
    edges = (np.arange(1025) / 1024) ** 2
    counted = MagnitudeDensity.from_histogram(edges, quantizer.counts(v))
    for levels in (quantizer.level_grid.levels, (0, 0.05, 0.1, 1)):
        assert expected_variance(levels, counted) == pytest.approx(
            expected_variance(levels, exact), rel=0.01
        )


def test_long_vectors_are_sampled_at_whole_buckets():
    quantizer = ALQ(bucket_size=100_000)
    v = torch.ones(2**21 + 5)
    norms = 100_000 * len(range(0, 21, 3))
    assert quantizer.counts(v).sum() == pytest.approx(norms * 100_000, rel=1e-4)


def test_buckets_of_nothing_or_not_finite_count_nothing_and_keep_the_levels():
    quantizer = ALQ(bucket_size=10)
    for spoiled in (torch.zeros(30), torch.full((30,), math.nan), torch.zeros(0)):
        assert not quantizer.counts(spoiled).any()
        quantizer.refresh("w", quantizer.counts(spoiled))
    quantizer.refresh("w", np.full(1024, math.inf))
    impossible = np.ones(1024)
    impossible[3] = -1.0
    quantizer.refresh("w", impossible)
    assert quantizer.state_dict() == {}
    half = torch.cat([torch.randn(10), torch.full((10,), math.inf)])
    assert torch.equal(
        torch.from_numpy(quantizer.counts(half)), torch.from_numpy(quantizer.counts(half[:10]))
    )


def test_refreshes_follow_the_schedule():
    quantizer = AMQ(refresh_at=[2, 5], refresh_every=8)
    assert quantizer.refresh_at == (2, 5)
    assert [step for step in range(20) if quantizer.is_due(step)] == [2, 5, 8, 16]
    assert ALQ().is_due(0)


@pytest.mark.parametrize("cls", CLASSES)
def test_state_continues_in_another_object(cls):
    quantizer, v = cls(), laplace()
    quantizer.refresh("w", quantizer.counts(v))
    state = quantizer.state_dict()
    assert state["w"].dtype == torch.float32
    other = cls()
    other.load_state_dict(copy.deepcopy(state))
    frames = [Compressor(q).compress(v, key="w", step=1) for q in (quantizer, other)]
    assert torch.equal(*frames)
    other.load_state_dict({})
    assert not torch.equal(frames[0], Compressor(other).compress(v, key="w", step=1))


@pytest.mark.parametrize(
    ("state", "text"),
    [
        ({"w": torch.tensor([0.0, 0.5])}, "levels of 'w' cannot be used"),
        ({"w": None}, "levels of 'w' cannot be used"),
        ({"w": torch.tensor([0.0, 0.5, 1.0])}, "take 3 bits, not 4"),
    ],
)
def test_a_state_that_does_not_fit_is_refused_and_changes_nothing(state, text):
    quantizer = ALQ()
    quantizer.refresh("w", quantizer.counts(laplace()))
    before = quantizer.for_tensor("w")
    with pytest.raises(CheckpointError, match=text):
        quantizer.load_state_dict(state)
    assert quantizer.for_tensor("w") == before


@pytest.mark.parametrize("cls", CLASSES)
def test_bounds_cover_the_levels_in_use(cls):
    quantizer = cls(bits=4)
    start = NUQSGD(bits=4).variance_bound(512)
    assert quantizer.variance_bound(512) == pytest.approx(start)
    quantizer.refresh("w", quantizer.counts(laplace()))
    assert quantizer.variance_bound(512) >= quantizer.for_tensor("w").variance_bound(512)
    assert quantizer.variance_bound(512) >= start


@pytest.mark.parametrize("cls", CLASSES)
def test_equality_repr_and_pickle_are_those_of_the_settings(cls):
    quantizer = cls(bits=5, refresh_at=(1,))
    quantizer.refresh("w", quantizer.counts(laplace()))
    assert quantizer == cls(bits=5, refresh_at=(1,))
    assert eval(repr(quantizer)) == quantizer
    assert hash(quantizer) == hash(cls(bits=5, refresh_at=(1,)))
    assert pickle.loads(pickle.dumps(quantizer)).for_tensor("w") == quantizer.for_tensor("w")
    assert isinstance(quantizer.for_tensor("w"), Levels)


@pytest.mark.parametrize("cls", CLASSES)
@pytest.mark.parametrize(
    ("settings", "text"),
    [
        ({"bits": 2}, "needs bits from 3 to 8"),
        ({"refresh_at": 3}, "refresh_at to be a tuple"),
        ({"refresh_at": (0, -1)}, "refresh_at to be a tuple"),
        ({"refresh_every": 0}, "refresh_every >= 1"),
        ({"refresh_every": True}, "refresh_every >= 1"),
        ({"norm": "mean"}, "unknown norm 'mean'"),
    ],
)
def test_what_is_not_allowed_is_named(cls, settings, text):
    with pytest.raises(ConfigError, match=text):
        cls(**settings)
