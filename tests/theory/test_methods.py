"""Bounds of the other compressors, each against the method itself."""

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from slimgrad.core.errors import ConfigError
from slimgrad.theory import (
    atomo_variance,
    dithered_variance,
    dithered_variance_bound,
    eden_variance,
    lloyd_max_normal,
    natural_variance_bound,
    power_iteration_error_bound,
    random_k_variance,
    sign_contraction,
    terngrad_variance_bound,
    top_k_error_bound,
    truncation_error,
    variance_bound,
)

VECTORS = st.lists(st.floats(-1, 1), min_size=1, max_size=30).filter(
    lambda v: np.linalg.norm(v) > 1e-3
)


def dithered(v, step, rng):
    u = rng.random((20_000, len(v))) - 0.5
    return step * (np.rint(v / step + u) - u)


@pytest.mark.parametrize("kind", ["normal", "sparse", "equal"])
def test_dithered_rounding_has_exactly_the_stated_variance(kind):
    rng = np.random.default_rng(0)
    v = {"normal": rng.standard_normal(16), "sparse": np.eye(16)[3], "equal": np.ones(16)}[kind]
    rms = np.linalg.norm(v) / 4
    errors = dithered(v, 0.8 * rms, rng) - v
    # 20,000 means of 16 squares of uniform errors: 6 deviations are 1 %.
    measured = (errors**2).sum(axis=1).mean() / (v @ v)
    assert measured == pytest.approx(dithered_variance(0.8), rel=0.012)
    assert np.abs(errors).max() <= 0.4 * rms * (1 + 1e-9)


def test_a_single_component_attains_the_bound_of_the_widened_step():
    v = np.zeros(16)
    v[5] = 2.0
    step = max(0.1 * np.linalg.norm(v) / 4, 2.0 / 7)
    errors = dithered(v, step, np.random.default_rng(1)) - v
    measured = (errors**2).sum(axis=1).mean() / (v @ v)
    assert measured == pytest.approx(dithered_variance_bound(0.1, 16, 7), rel=0.012)


@given(VECTORS, st.floats(0.01, 4), st.integers(1, 127))
def test_no_step_exceeds_the_bound_of_the_dither(vector, c, m):
    v = np.asarray(vector)
    step = max(c * math.sqrt(v @ v / len(v)), np.abs(v).max() / m)
    variance = len(v) * step**2 / 12 / (v @ v)
    assert variance <= dithered_variance_bound(c, len(v), m) * (1 + 1e-9)


def test_lloyd_max_levels_are_a_fixed_point():
    for bits in (1, 2, 3, 4, 6, 8):
        levels = np.asarray(lloyd_max_normal(bits).levels)
        edges = np.concatenate([[0.0], (levels[1:] + levels[:-1]) / 2, [12.0]])
        error = 0.0
        for level, low, high in zip(levels, edges[:-1], edges[1:], strict=True):
            z = np.linspace(low, high, 8_001)
            density = np.exp(-(z**2) / 2) / math.sqrt(2 * math.pi)
            mass = np.trapezoid(density, z)
            assert np.trapezoid(z * density, z) / mass == pytest.approx(level, abs=1e-6)
            error += 2 * float(np.trapezoid((z - level) ** 2 * density, z))
        assert lloyd_max_normal(bits).distortion == pytest.approx(error, rel=1e-5)


def test_known_lloyd_max_values():
    assert lloyd_max_normal(1).levels == pytest.approx((math.sqrt(2 / math.pi),))
    assert lloyd_max_normal(1).distortion == pytest.approx(1 - 2 / math.pi)
    assert lloyd_max_normal(2).levels == pytest.approx((0.4528, 1.510), abs=5e-4)
    assert lloyd_max_normal(3).distortion == pytest.approx(0.03454, abs=2e-5)
    assert eden_variance(1) == pytest.approx(math.pi / 2 - 1)


@pytest.mark.parametrize("bits", [1, 2, 4])
def test_a_rotated_vector_has_nearly_the_stated_variance(bits):
    rng = np.random.default_rng(2)
    positive = np.asarray(lloyd_max_normal(bits).levels)
    levels = np.concatenate([-positive[::-1], positive])
    relative, n = [], 4096
    for _ in range(20):
        x = rng.standard_normal(n)
        x *= math.sqrt(n) / np.linalg.norm(x)
        q = levels[np.abs(x[:, None] - levels).argmin(axis=1)]
        decoded = q * (x @ x) / (x @ q)
        relative.append(((decoded - x) ** 2).sum() / (x @ x))
    # Twenty uniformly random directions of 4096 components: the mean deviates by 0.5 %.
    assert np.mean(relative) == pytest.approx(eden_variance(bits), rel=0.03)


@given(VECTORS, st.integers(1, 30))
def test_top_k_keeps_its_share_and_signs_theirs(vector, k):
    v = np.asarray(vector)
    k = min(k, len(v))
    kept = np.sort(np.abs(v))[::-1][:k]
    assert 1 - (kept @ kept) / (v @ v) <= top_k_error_bound(len(v), k) + 1e-12
    scaled = np.abs(v).sum() / len(v) * np.where(v < 0, -1.0, 1.0)
    error = ((scaled - v) ** 2).sum() / (v @ v)
    assert error == pytest.approx(1 - sign_contraction(v), abs=1e-9)
    assert sign_contraction(v) >= 1 / len(v) - 1e-12


def test_random_k_has_exactly_the_stated_variance():
    rng = np.random.default_rng(3)
    v, n, k = rng.standard_normal(12), 12, 3
    kept = np.argsort(rng.random((40_000, n)), axis=1) < k
    errors = ((kept * v * n / k - v) ** 2).sum(axis=1) / (v @ v)
    spread = errors.std() / 200
    assert errors.mean() == pytest.approx(random_k_variance(n, k), abs=6 * spread)


def test_ternary_rounding():
    assert terngrad_variance_bound(2) == pytest.approx(0.207107, abs=1e-6)
    for n in (1, 2, 100, 10**9):
        assert terngrad_variance_bound(n) == pytest.approx(variance_bound((0, 1), n, "linf"))


@given(st.floats(1e-30, 1e30), st.sampled_from([0.5, 0.3, 0.9]))
def test_natural_rounding_stays_within_its_bound(value, ratio):
    k = math.floor(math.log(value, ratio))
    low, high = sorted((ratio**k, ratio ** (k + 1)))
    variance = (value - low) * (high - value) / value**2
    assert variance <= natural_variance_bound(ratio) + 1e-9
    worst = 2 * low * high / (low + high)
    attained = (worst - low) * (high - worst) / worst**2
    assert attained == pytest.approx(natural_variance_bound(ratio))


def test_sampled_atoms_have_the_stated_variance():
    rng = np.random.default_rng(4)
    c = np.array([5.0, 2.0, 1.0, 1.0, 0.5, 0.0])
    p = np.array([1, 8 / 9, 4 / 9, 4 / 9, 2 / 9, 0])
    assert p.sum() == pytest.approx(3)
    with np.errstate(invalid="ignore", divide="ignore"):
        sent = np.where(rng.random((40_000, 6)) < p, np.where(p > 0, c / p, 0), 0)
    errors = ((sent - c) ** 2).sum(axis=1) / (c @ c)
    assert errors.mean() == pytest.approx(atomo_variance(c, 3), abs=6 * errors.std() / 200)
    assert atomo_variance([1.0] * 8, 2) == pytest.approx(random_k_variance(8, 2))


def test_one_power_iteration_stays_within_its_bound():
    rng = np.random.default_rng(5)
    left, _ = np.linalg.qr(rng.standard_normal((40, 30)))
    right, _ = np.linalg.qr(rng.standard_normal((30, 30)))
    for decay in (0.7, 0.95):
        s = decay ** np.arange(30.0)
        matrix = (left * s) @ right.T
        for rank in (1, 2, 4, 8):
            errors = []
            for _ in range(50):
                p, _ = np.linalg.qr(matrix @ rng.standard_normal((30, rank)))
                errors.append(((matrix - p @ (p.T @ matrix)) ** 2).sum() / (s @ s))
            assert min(errors) >= truncation_error(s, rank) - 1e-12
            assert np.mean(errors) <= power_iteration_error_bound(s, rank)
            assert truncation_error(s, rank) <= 1 - rank / 30
    assert power_iteration_error_bound([2.0, 1.0], 2) == truncation_error([2.0, 1.0], 2) == 0.0


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: dithered_variance(0), "step_rms=0"),
        (lambda: dithered_variance_bound(1, 0, 7), "n=0"),
        (lambda: dithered_variance_bound(1, 4, 0), "largest_index=0"),
        (lambda: lloyd_max_normal(9), "bits=9"),
        (lambda: eden_variance(0), "bits=0"),
        (lambda: top_k_error_bound(4, 5), "from 1 to 4, got k=5"),
        (lambda: random_k_variance(4, 0), "k=0"),
        (lambda: atomo_variance([0.0], 1), "scores must be >= 0 with a positive"),
        (lambda: atomo_variance([1.0], 0), "budget=0"),
        (lambda: sign_contraction([0.0, 0.0]), "vector is zero"),
        (lambda: terngrad_variance_bound(0), "n=0"),
        (lambda: natural_variance_bound(1.0), "ratio=1.0"),
        (lambda: truncation_error([-1.0], 1), "singular_values must be"),
        (lambda: truncation_error([1.0], -1), "rank=-1"),
        (lambda: power_iteration_error_bound([1.0], 0), "rank=0"),
    ],
)
def test_arguments_are_checked(call, message):
    with pytest.raises(ConfigError, match=message):
        call()
