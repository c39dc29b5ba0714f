"""What each sparsifier keeps, and the error it promises."""

import math

import numpy as np
import pytest
import torch

from slimgrad.comm.sparsifiers import SPARSIFIERS, Atomo, RandomK, Threshold, TopK
from slimgrad.comm.sparsifiers.randomk import stratified_places, stretch_lengths
from slimgrad.comm.sparsifiers.water_filling import inclusion_probabilities
from slimgrad.core.errors import ConfigError

ALL = [TopK(0.2), RandomK(0.2), RandomK(0.2, scaled=False), Atomo(0.2), Threshold(1.0)]
BIASED = [s for s in ALL if not s.unbiased] + [
    Threshold(0.6),
    Threshold(0.5, unit="max"),
    Threshold(0.5, unit="one"),
]
UNBIASED = [s for s in ALL if s.unbiased]


def sample(n, seed=1):
    return torch.randn(n, generator=torch.Generator().manual_seed(seed))


def dense(kept):
    vector = torch.zeros(kept.n, dtype=torch.float64)
    vector[kept.places] = kept.values.double()
    return vector


def vectors(n):
    yield sample(n)
    yield torch.ones(n)
    yield torch.nn.functional.one_hot(torch.tensor(n // 3), n).float() * -3
    yield sample(n) ** 5
    yield torch.full((n,), 1e-42)
    yield torch.full((n,), 3e38).mul_(sample(n).sign())
    almost = torch.full((n,), 0.4999)
    almost[0] = 1.0
    yield almost


def relative_error(kept, vector):
    vector = vector.double()
    return float((dense(kept) - vector).square().sum() / vector.square().sum())


def test_every_sparsifier_is_tested_here():
    assert {type(s) for s in ALL} == {SPARSIFIERS.get(name) for name in SPARSIFIERS}
    for name in SPARSIFIERS:
        assert SPARSIFIERS.get(name).name == name


@pytest.mark.parametrize("sparsifier", ALL, ids=repr)
@pytest.mark.parametrize("n", [0, 1, 5, 1000])
def test_places_ascend_and_nothing_becomes_something(sparsifier, n):
    for vector in (sample(n), torch.zeros(n)):
        kept = sparsifier.select(vector, key=9)
        assert kept.n == n
        assert kept.places.dtype == torch.int64
        assert kept.values.dtype == torch.float32
        assert bool((kept.places.diff() > 0).all())
        assert bool(((kept.places >= 0) & (kept.places < n)).all())
        assert bool(((dense(kept) == 0) | (dense(kept) * vector > 0)).all())


@pytest.mark.parametrize("sparsifier", [s for s in ALL if s.unbiased or s.fixed_count], ids=repr)
def test_random_places_follow_the_key(sparsifier):
    vector = sample(1000)
    first, again, other = (sparsifier.select(vector, key).places for key in (5, 5, 6))
    assert torch.equal(first, again)
    assert first.tolist() != other.tolist()


@pytest.mark.parametrize("sparsifier", [*ALL, *BIASED], ids=repr)
@pytest.mark.parametrize("bad", [math.inf, -math.inf, math.nan])
def test_what_is_not_finite_is_seen(sparsifier, bad):
    vector = sample(500)
    vector[123] = bad
    kept = sparsifier.select(vector, key=2)
    assert not kept.values.isfinite().all()


@pytest.mark.parametrize("n", [1, 10, 997])
@pytest.mark.parametrize("keep", [0.001, 0.3, 1.0])
def test_top_k_keeps_exactly_k_and_the_largest(n, keep):
    k = max(1, round(keep * n))
    for vector in vectors(n):
        kept = TopK(keep).select(vector, key=0)
        assert len(kept.places) == k
        left_out = torch.ones(n, dtype=torch.bool)
        left_out[kept.places] = False
        assert not bool((vector[left_out].abs() > kept.values.abs().min()).any())
        assert torch.equal(kept.values, vector[kept.places])


@pytest.mark.parametrize("sparsifier", BIASED, ids=repr)
@pytest.mark.parametrize("n", [1, 10, 1000])
def test_biased_sparsifiers_contract_as_promised(sparsifier, n):
    for vector in vectors(n):
        errors = [relative_error(sparsifier.select(vector, key), vector) for key in range(200)]
        spread = 6 * np.std(errors) / math.sqrt(len(errors))
        assert np.mean(errors) <= sparsifier.contraction_bound(n) * (1 + 1e-6) + spread


def test_contraction_bounds_are_attained():
    equal = torch.full((1000,), -2.0)
    for sparsifier in (TopK(0.2), RandomK(0.2, scaled=False)):
        error = relative_error(sparsifier.select(equal, 3), equal)
        assert error == pytest.approx(sparsifier.contraction_bound(1000), rel=1e-9)
    below = torch.full((1000,), 0.5 * (1 - 1e-6))
    below[7] = 1.0
    for_max = Threshold(0.5, unit="max")
    error = relative_error(for_max.select(below, 3), below)
    assert error == pytest.approx(for_max.contraction_bound(1000), rel=1e-4)
    # All but one of many just below 0.6 rms, one very large.
    heavy = torch.full((100_000,), 0.6 * (1 - 1e-5))
    heavy[0] = math.sqrt(100_000 * (1 - 0.36))
    for_rms = Threshold(0.6)
    error = relative_error(for_rms.select(heavy, 3), heavy)
    assert error == pytest.approx(for_rms.contraction_bound(100_000), rel=1e-3)


def probabilities(sparsifier, vector):
    if isinstance(sparsifier, Atomo):
        magnitudes = vector.abs().double().numpy()
        return torch.from_numpy(inclusion_probabilities(magnitudes, sparsifier.keep * len(vector)))
    lengths = stretch_lengths(len(vector), max(1, round(sparsifier.keep * len(vector))))
    return torch.from_numpy(np.repeat(1 / lengths, lengths.astype(int)))


@pytest.mark.parametrize("sparsifier", [*UNBIASED, RandomK(0.15), Atomo(0.01)], ids=repr)
@pytest.mark.parametrize("index", range(4))
def test_unbiased_sparsifiers_keep_as_often_as_they_enlarge(sparsifier, index):
    n, repeats = 60, 1500
    vector = list(vectors(n))[index]
    p = probabilities(sparsifier, vector)
    draws = [
        sparsifier.select(vector, key) for key in range(index * repeats, (index + 1) * repeats)
    ]
    counts, per_draw = torch.zeros(n, dtype=torch.float64), []
    for kept in draws:
        counts[kept.places] += 1
        expected = vector[kept.places].double() / p[kept.places]
        assert torch.allclose(kept.values.double(), expected, rtol=1e-6, atol=0)
        per_draw.append(relative_error(kept, vector))
    # 60 binomial counts: 7 deviations and 20 cover the normal and the Poisson case to 1e-9.
    tolerance = 7 * (repeats * p * (1 - p)).sqrt() + 20 * (p < 1)
    assert bool(((counts - repeats * p).abs() <= tolerance + 1e-9)[vector != 0].all())
    bound = sparsifier.variance_bound(n)
    spread = 7 * np.std(per_draw) / math.sqrt(repeats)
    assert np.mean(per_draw) <= bound * (1 + 1e-6) + spread


def test_variance_bounds_are_attained_by_equal_magnitudes():
    equal = torch.full((1000,), -2.0)
    random = RandomK(0.1)
    assert relative_error(random.select(equal, 1), equal) == pytest.approx(9.0, rel=1e-6)
    assert random.variance_bound(1000) == 9.0
    atomo = Atomo(0.1)
    errors = [relative_error(atomo.select(equal, key), equal) for key in range(1000)]
    # Sum of 1000 independent terms, kept with probability 0.1: deviation 9 * 0.095 of one draw.
    assert np.mean(errors) == pytest.approx(9.0, abs=7 * 0.9 / math.sqrt(1000))


def test_atomo_keeps_the_expected_number_and_less_variance_than_random_places():
    vector = sample(2000) ** 3
    atomo, random = Atomo(0.05), RandomK(0.05)
    kept = [len(atomo.select(vector, key).places) for key in range(400)]
    assert np.mean(kept) == pytest.approx(100, abs=7 * 10 / math.sqrt(400))
    ours = np.mean([relative_error(atomo.select(vector, key), vector) for key in range(100)])
    theirs = np.mean([relative_error(random.select(vector, key), vector) for key in range(100)])
    assert ours < theirs / 4


def test_stretches_cover_the_vector_once():
    for n, k in [(10, 3), (7, 7), (1000, 1), (5, 0), (0, 0)]:
        lengths = stretch_lengths(n, k)
        assert len(lengths) == k
        assert k == 0 or lengths.sum() == n
        starts = np.cumsum(lengths) - lengths
        places = stratified_places(n, k, key=4)
        assert bool(((places >= starts) & (places < starts + lengths)).all())


def test_every_place_of_a_stretch_is_equally_likely():
    counts = np.zeros(7)
    places = stratified_places(7 * 70_000, 70_000, key=11)
    counts = np.bincount(places % 7, minlength=7)
    # Six degrees of freedom: chi-square above 45 has probability 5e-8.
    assert ((counts - 10_000) ** 2 / 10_000).sum() < 45


@pytest.mark.parametrize("expected", [0.5, 3.0, 17.5, 100.0])
def test_water_filling_adds_up_and_keeps_the_order(expected):
    magnitudes = sample(50).abs().double().numpy() ** 4
    magnitudes[::7] = 0
    p = inclusion_probabilities(magnitudes, expected)
    assert p.sum() == pytest.approx(min(expected, np.count_nonzero(magnitudes)))
    assert bool(((p >= 0) & (p <= 1)).all())
    assert bool((p[magnitudes == 0] == 0).all())
    free = (p > 0) & (p < 1)
    ratios = p[free] / magnitudes[free]
    assert ratios == pytest.approx(ratios[:1].repeat(len(ratios)))


def test_water_filling_survives_extremes():
    assert inclusion_probabilities(np.empty(0), 1.0).tolist() == []
    assert inclusion_probabilities(np.zeros(3), 1.0).tolist() == [0, 0, 0]
    huge = inclusion_probabilities(np.array([1e38, 1e38, 1e-45, 1e-45]), 2.0)
    assert huge[:2] == pytest.approx(1)
    assert bool((huge[2:] >= 0).all())
    assert inclusion_probabilities(np.ones(3), np.nextafter(3.0, 0)) == pytest.approx(1)


@pytest.mark.parametrize("kind", [TopK, RandomK, Atomo])
@pytest.mark.parametrize("keep", [0, 1.5, -0.1, math.nan, "1", True])
def test_a_wrong_share_is_named(kind, keep):
    with pytest.raises(ConfigError, match=f"{kind.__name__} keeps a share above 0 and at most 1"):
        kind(keep=keep)


def test_wrong_thresholds_are_named():
    for threshold in (0, -1, math.inf, math.nan, "2", True):
        with pytest.raises(ConfigError, match="needs a threshold > 0"):
            Threshold(threshold)
    with pytest.raises(ConfigError, match="unknown unit 'rsm': did you mean 'rms'"):
        Threshold(1.0, unit="rsm")  # type: ignore[arg-type]
    with pytest.raises(ConfigError, match=r"no component exceeds 1\.5 times the largest"):
        Threshold(1.5, unit="max")


def test_the_other_bound_is_refused():
    with pytest.raises(ConfigError, match="is biased; ask for its contraction_bound"):
        TopK().variance_bound(10)
    with pytest.raises(ConfigError, match="is unbiased; ask for its variance_bound"):
        RandomK().contraction_bound(10)
    with pytest.raises(ConfigError, match="is biased"):
        RandomK(scaled=False).variance_bound(10)


def test_scaled_is_a_switch():
    with pytest.raises(ConfigError, match="RandomK: scaled must be True or False, got 'no'"):
        RandomK(keep=0.1, scaled="no")
