"""What each low-rank method makes of a matrix, and the error it promises."""

import math

import pytest
import torch

from slimgrad.comm.lowrank import LOW_RANK, PowerSGD, SpectralAtomo
from slimgrad.comm.lowrank.powersgd import orthonormal
from slimgrad.core.errors import ConfigError

METHODS = [PowerSGD(3), SpectralAtomo(3)]


def matrix_of(rows, columns, seed=0):
    return torch.randn(rows, columns, generator=torch.Generator().manual_seed(seed))


def approximated(factors):
    return factors.left.double() @ factors.right.double().T


def relative_error(factors, matrix):
    error = approximated(factors) - matrix.double()
    return float(error.square().sum() / matrix.double().square().sum())


def test_every_method_is_tested_here():
    assert {type(m) for m in METHODS} == {LOW_RANK.get(name) for name in LOW_RANK}


@pytest.mark.parametrize("method", METHODS, ids=repr)
@pytest.mark.parametrize("shape", [(1, 1), (1, 7), (7, 1), (2, 9), (20, 30)])
@pytest.mark.parametrize("size", [1.0, 1e-42, 1e37])
def test_a_matrix_of_the_rank_that_is_sent_is_exact(method, shape, size):
    rank = min(2, *shape)
    matrix = (matrix_of(shape[0], rank) @ matrix_of(rank, shape[1], seed=1)) * size
    factors = method.factor(matrix, key=1, start=None)
    # A denormal has few bits of its own.
    assert torch.allclose(
        approximated(factors).float(),
        matrix,
        rtol=1e-4,
        atol=3e-5 * float(matrix.abs().max()) + 3e-45,
    )


@pytest.mark.parametrize("method", METHODS, ids=repr)
@pytest.mark.parametrize("size", [3.4e38, 1e-45, 1e20, 1e-20])
def test_the_ends_of_the_range_are_safe(method, size):
    matrix = torch.zeros(8, 5)
    matrix[2, 3] = -size
    factors = method.factor(matrix, key=1, start=None)
    assert torch.allclose(approximated(factors).float(), matrix, rtol=1e-5, atol=0)


@pytest.mark.parametrize("method", METHODS, ids=repr)
@pytest.mark.parametrize("shape", [(1, 5), (6, 4), (40, 2)])
def test_a_zero_matrix_gives_zero_and_does_no_harm(method, shape):
    zero = torch.zeros(shape)
    factors = method.factor(zero, key=1, start=None)
    assert not approximated(factors).any()
    matrix = torch.outer(torch.ones(shape[0]), torch.ones(shape[1]))
    after = method.factor(matrix, key=2, start=factors.start)
    assert torch.allclose(approximated(after).float(), matrix, atol=1e-5)


@pytest.mark.parametrize("method", METHODS, ids=repr)
@pytest.mark.parametrize("bad", [math.nan, math.inf, -math.inf])
def test_what_is_not_finite_makes_everything_nan_and_no_start(method, bad):
    matrix = matrix_of(6, 8)
    matrix[3, 4] = bad
    factors = method.factor(matrix, key=1, start=None)
    assert approximated(factors).isnan().all()
    assert factors.start is None


def test_powersgd_is_a_projection_and_warm_starts_find_the_leading_directions():
    left, right = orthonormal(matrix_of(40, 10)), orthonormal(matrix_of(60, 10, seed=1))
    sigma = 0.6 ** torch.arange(10.0)
    matrix = left * sigma @ right.T
    method, start, errors = PowerSGD(3), None, []
    for step in range(12):
        factors = method.factor(matrix, key=step, start=start)
        start = factors.start
        errors.append(relative_error(factors, matrix))
        residual = matrix.double() - approximated(factors)
        assert float((residual * approximated(factors)).sum()) == pytest.approx(0, abs=1e-5)
    best = float(sigma[3:].square().sum() / sigma.square().sum())
    assert best - 1e-6 <= errors[-1] < best * 1.001
    assert errors[0] > best * 1.05
    assert all(error <= method.contraction_bound(2400) for error in errors)


def test_powersgd_has_no_more_columns_than_the_matrix_and_takes_other_starts():
    method = PowerSGD(rank=8)
    matrix = matrix_of(3, 20)
    factors = method.factor(matrix, key=0, start=None)
    assert factors.left.shape == (3, 3)
    assert relative_error(factors, matrix) < 1e-10
    # A start for another rank or shape, or one with a column of zeros, serves as far as it goes.
    for start in (torch.ones(20, 1), torch.ones(20, 9), torch.ones(5, 3), torch.zeros(20, 3)):
        assert method.factor(matrix, 0, start).left.isfinite().all()
    zeros = method.factor(matrix, 0, torch.zeros(20, 3))
    assert torch.equal(zeros.left, factors.left)


@pytest.mark.parametrize("size", [1.0, 1e-30, 1e30])
def test_orthonormal_columns_keep_the_span_and_dependent_ones_become_zero(size):
    free = matrix_of(50, 3)
    dependent = torch.cat([free, free @ matrix_of(3, 2, seed=1), torch.zeros(50, 1)], 1) * size
    result = orthonormal(dependent)
    gram = torch.diag(torch.tensor([1.0, 1, 1, 0, 0, 0]))
    assert torch.allclose(result.T @ result, gram, atol=1e-6)
    assert torch.allclose(result @ (result.T @ dependent) / size, dependent / size, atol=1e-4)
    nearly = torch.stack([torch.ones(50), torch.ones(50) + 1e-3 * free[:, 0]], 1)
    result = orthonormal(nearly)
    assert torch.allclose(result.T @ result, torch.eye(2), atol=1e-6)


def test_spectral_atomo_has_the_mean_and_variance_promised():
    repeats, method = 500, SpectralAtomo(3)
    for matrix in (matrix_of(8, 12), torch.eye(10), matrix_of(6, 6) ** 5):
        factors = [method.factor(matrix, key, None) for key in range(repeats)]
        errors = torch.stack([approximated(f) - matrix.double() for f in factors])
        norm = matrix.double().square().sum()
        per_draw = errors.square().sum((1, 2)) / norm
        bound = method.variance_bound(matrix.shape[0] ** 2)
        variance, noise = float(per_draw.mean()), float(per_draw.std()) / math.sqrt(repeats)
        assert variance <= bound + 7 * noise
        # E||mean error||^2 is the variance over the repeats; a chi-square of ten degrees of
        # freedom above 100 is rarer than 1e-15.
        assert float(errors.mean(0).square().sum() / norm) <= 10 * bound / repeats
        ranks = torch.tensor([float(f.left.shape[1]) for f in factors])
        assert float(ranks.mean()) == pytest.approx(3, abs=7 * 1.5 / math.sqrt(repeats))
    identity = [
        relative_error(method.factor(torch.eye(10), key, None), torch.eye(10))
        for key in range(repeats)
    ]
    attained = sum(identity) / repeats
    assert attained == pytest.approx(method.variance_bound(100), rel=0.2)


@pytest.mark.parametrize("method", METHODS, ids=repr)
def test_only_shapes_that_gain_are_factored(method):
    assert method.shape((64, 32, 3, 3)) == (64, 288)
    assert method.shape((7, 5)) is None
    assert method.shape((1000,)) is None
    assert method.shape(()) is None
    assert method.shape((0, 5)) is None


@pytest.mark.parametrize("kind", [PowerSGD, SpectralAtomo])
@pytest.mark.parametrize("rank", [0, -1, 1.5, True, "2"])
def test_a_wrong_rank_is_named(kind, rank):
    with pytest.raises(ConfigError, match=f"{kind.__name__} needs a rank >= 1, got rank={rank!r}"):
        kind(rank=rank)


def test_the_other_bound_is_refused():
    with pytest.raises(ConfigError, match="is biased; ask for its contraction_bound"):
        PowerSGD().variance_bound(10)
    with pytest.raises(ConfigError, match="is unbiased; ask for its variance_bound"):
        SpectralAtomo().contraction_bound(10)
    assert SpectralAtomo(rank=9).variance_bound(16) == 0.0
