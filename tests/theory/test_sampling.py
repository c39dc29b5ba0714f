"""Variances of unbiased estimators against their own draws."""

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from slimgrad import kernels
from slimgrad.core.errors import ConfigError
from slimgrad.theory import (
    control_variate_variance,
    one_term_variance,
    row_sampling_variance,
    row_scores,
    top_one_bias,
    top_one_residual_variance,
    water_filling,
)

DRAWS = 20_000


def agrees(estimates, exact, variance):
    """Mean and spread of estimates, rows of draws, within 6 deviations: P < 1e-8 each."""
    flat = estimates.reshape(len(estimates), -1)
    squares = ((flat - exact.ravel()) ** 2).sum(axis=1)
    error = 6 * squares.std() / len(flat) ** 0.5
    assert squares.mean() == pytest.approx(variance, abs=error + 1e-9)
    offset = np.abs(flat.mean(axis=0) - exact.ravel())
    assert (offset <= 6 * flat.std(axis=0) / len(flat) ** 0.5 + 1e-9).all()


def rows(count=12, filters=2, entries=3, seed=0):
    rng = np.random.default_rng(seed)
    heavy = rng.standard_normal((count, 1)) ** 3
    return heavy * rng.standard_normal((count, filters)), rng.standard_normal((count, entries))


@settings(max_examples=200, deadline=None)
@given(
    st.lists(st.just(0.0) | st.floats(1e-6, 100), min_size=1, max_size=20).filter(any),
    st.floats(0.1, 25),
    st.integers(0, 2**32 - 1),
)
def test_water_filling_meets_its_budget_and_no_other_probabilities_do_better(scores, k, seed):
    s = np.asarray(scores)
    p = water_filling(s, k)
    assert ((p >= 0) & (p <= 1)).all()
    assert p.sum() == pytest.approx(min(k, int((s > 0).sum())))
    if k < (s > 0).sum():
        free = (s > 0) & (p < 1)
        # One price: score / p is equal where p < 1 and at least that where p = 1.
        price = (s[free] / p[free]).max()
        assert s[free] / p[free] == pytest.approx(np.full(free.sum(), price))
        assert (s[p == 1] >= price * (1 - 1e-9)).all()
        other = np.random.default_rng(seed).random(len(s)) * (s > 0) + 1e-3 * (s > 0)
        other = other / other.sum() * k
        if other.max() <= 1 and p[s > 0].min() > 1e-9:
            best = row_sampling_variance(s, p)
            assert best <= row_sampling_variance(s, other) * (1 + 1e-9) + 1e-9


def test_water_filling_with_a_uniform_share_bounds_the_weights():
    p = water_filling([100.0, 1.0, 0.0, 0.0], 2, uniform_share=0.1)
    assert p.tolist() == pytest.approx([0.95, 0.95, 0.05, 0.05])
    assert water_filling([1.0] * 10, 2).tolist() == pytest.approx([0.2] * 10)


def test_water_filling_keeps_a_small_tail_beside_a_large_head():
    p = water_filling([1e20, 1.0, 1.0], 2)
    assert p.tolist() == pytest.approx([1.0, 0.5, 0.5])


def test_sampled_rows():
    g, x = rows()
    scores = row_scores(g, x)
    assert scores == pytest.approx(np.linalg.norm(g, axis=1) * np.linalg.norm(x, axis=1))
    p = water_filling(scores, 4, uniform_share=0.2)
    kept = np.random.default_rng(1).random((DRAWS, len(p))) < p
    estimates = np.einsum("dr,rk,rc->dkc", kept / p, g, x)
    agrees(estimates, g.T @ x, row_sampling_variance(scores, p))


def test_rows_less_a_constant_patch():
    g, x = rows()
    constant = x.mean(axis=0)
    scores = row_scores(g, x - constant)
    p = water_filling(scores, 4, uniform_share=0.2)
    kept = np.random.default_rng(2).random((DRAWS, len(p))) < p
    estimates = np.einsum("dr,rk,rc->dkc", kept / p, g, x - constant)
    estimates += np.outer(g.sum(axis=0), constant)
    agrees(estimates, g.T @ x, row_sampling_variance(scores, p))


def test_block_means_and_sampled_residuals():
    g, x = rows()
    blocks = np.arange(12) // 4
    g_mean = np.stack([g[blocks == b].mean(axis=0) for b in range(3)])
    x_mean = np.stack([x[blocks == b].mean(axis=0) for b in range(3)])
    scores = row_scores(g, x, blocks)
    p = water_filling(scores, 5, uniform_share=0.2)
    kept = np.random.default_rng(3).random((DRAWS, len(p))) < p
    residual = np.einsum("dr,rk,rc->dkc", kept / p, g - g_mean[blocks], x - x_mean[blocks])
    agrees(residual + 4 * g_mean.T @ x_mean, g.T @ x, row_sampling_variance(scores, p))


@pytest.mark.parametrize("weights", [None, "gradient", "uniform"])
def test_one_position_of_a_map(weights):
    g, x = rows(filters=1)
    terms = g * x
    q = {"gradient": np.abs(g[:, 0]), "uniform": np.ones(12)}.get(weights)
    chances = np.linalg.norm(terms, axis=1) if q is None else q
    chances = chances / chances.sum()
    picks = np.random.default_rng(4).choice(12, size=(DRAWS, 2), p=chances)
    estimates = (terms[picks] / chances[picks][..., None]).mean(axis=1)
    agrees(estimates, terms.sum(axis=0), one_term_variance(terms, q, draws=2))
    assert one_term_variance(terms) <= one_term_variance(terms, np.abs(g[:, 0])) + 1e-9


def test_walsh_terms():
    g, x = rows(count=16)
    signs = np.array([[1, 1, 1, 1], [1, -1, 1, -1], [1, 1, -1, -1], [1, -1, -1, 1]]) / 2
    g_parts, x_parts = (np.einsum("kj,bjc->kbc", signs, m.reshape(4, 4, -1)) for m in (g, x))
    H = np.einsum("kbf,kbc->kfc", g_parts, x_parts)
    assert H.sum(axis=0) == pytest.approx(g.T @ x)
    rest = H[1:].reshape(3, -1)
    norms = np.linalg.norm(rest, axis=1)
    picks = np.random.default_rng(5).choice(3, size=DRAWS, p=norms / norms.sum())
    estimates = H[0].ravel() + rest[picks] * (norms.sum() / norms[picks])[:, None]
    agrees(estimates, g.T @ x, one_term_variance(rest))


def test_a_random_phase():
    g, x = rows(count=16)
    phases = np.stack([(g[k::4].T @ x[k::4]).ravel() for k in range(4)])
    formula = 4 * (phases**2).sum() - ((g.T @ x) ** 2).sum()
    assert one_term_variance(phases, np.ones(4)) == pytest.approx(formula)
    picks = np.random.default_rng(6).integers(4, size=DRAWS)
    agrees(4 * phases[picks], g.T @ x, formula)


def test_the_largest_position_and_one_of_the_others():
    g, x = rows(filters=1, seed=7)
    g = g[:, 0]
    top = int(np.abs(g).argmax())
    q = np.abs(g) * (np.arange(12) != top)
    q = q / q.sum()
    picks = np.random.default_rng(8).choice(12, size=DRAWS, p=q)
    estimates = g[top] * x[top] + (g[picks] / q[picks])[:, None] * x[picks]
    agrees(estimates, g @ x, top_one_residual_variance(g, x))
    assert top_one_residual_variance([3.0], [[1.0]]) == 0.0


def test_a_predicted_layer():
    rng = np.random.default_rng(9)
    g = rng.standard_normal(8)
    m = g + 0.3 * rng.standard_normal(8)
    beta = (g @ m) / (m @ m)
    kept = rng.random((DRAWS, 1)) < 0.25
    estimates = beta * m + kept / 0.25 * (g - beta * m)
    agrees(estimates, g, control_variate_variance(g, m, 0.25))
    assert control_variate_variance(g, np.zeros(8), 0.25) == pytest.approx(3 * g @ g)
    assert control_variate_variance(g, m, 0.25) < 3 * g @ g
    assert control_variate_variance(g, g, 0.25) == pytest.approx(0, abs=1e-12)


def patches_of(x):
    """3 x 3 patches with padding 1: samples, positions, entries."""
    return torch.nn.functional.unfold(x, 3, padding=1).transpose(1, 2).double().numpy()


def test_the_bias_of_top_1_on_the_example_worked_by_hand():
    x = torch.arange(1.0, 10.0).reshape(1, 1, 3, 3)
    grad = np.zeros((1, 9))
    grad[0, [0, 4, 8]] = 1, -3, 1
    exact = np.array([2, 0, -9, -4, -5, -16, -21, -20, -22])
    assert (grad @ patches_of(x)[0])[0].tolist() == exact.tolist()
    bias = top_one_bias(grad, patches_of(x))
    assert bias.tolist() == (-np.arange(1, 10) - exact).tolist()


def test_the_bias_of_top_1_is_that_of_the_kernel():
    generator = torch.Generator().manual_seed(0)
    x = torch.randn(5, 2, 6, 6, generator=generator)
    grad = torch.randn(5, 3, 6, 6, generator=generator)
    grad[2, 1] = 0
    estimate = kernels.topone_weight_grad(x, grad, (3, 3), (1, 1), (1, 1), (1, 1), 1, 1.0)
    exact = torch.ops.aten.convolution_backward(
        grad, x, torch.zeros(3, 2, 3, 3), None, [1, 1], [1, 1], [1, 1], False, [0, 0], 1,
        [False, True, False],
    )[1]  # fmt: skip
    for o in range(3):
        bias = top_one_bias(grad[:, o].flatten(1).double().numpy(), patches_of(x))
        measured = (estimate[o] - exact[o]).flatten().double().numpy()
        assert measured == pytest.approx(bias, abs=2e-4)


def test_equal_patches_have_no_bias():
    grad = np.random.default_rng(0).standard_normal((4, 7))
    patches = np.broadcast_to(np.random.default_rng(1).standard_normal((4, 1, 5)), (4, 7, 5))
    assert top_one_bias(grad, patches) == pytest.approx(np.zeros(5), abs=1e-12)


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: water_filling([0.0], 1), "scores must be"),
        (lambda: water_filling([1.0], 0), "budget=0"),
        (lambda: water_filling([1.0], 1, uniform_share=2), "uniform_share=2"),
        (lambda: row_sampling_variance([1.0], [1.0, 1.0]), "as many probabilities"),
        (lambda: row_sampling_variance([1.0], [1.5]), "probabilities from 0 to 1"),
        (lambda: row_sampling_variance([1.0], [0.0]), "biased"),
        (lambda: row_scores(np.ones((2, 1)), np.ones((3, 1))), "as many rows"),
        (lambda: row_scores(np.ones(2), np.ones((2, 1))), "2 dimension"),
        (lambda: one_term_variance(np.ones((2, 1)), [1.0]), "as many probabilities"),
        (lambda: one_term_variance(np.ones((2, 1)), [1.0, 0.0]), "biased"),
        (lambda: one_term_variance(np.ones((2, 1)), draws=0), "draws=0"),
        (lambda: top_one_residual_variance([1.0, 2.0], [[1.0]]), "as many patches"),
        (lambda: control_variate_variance([1.0], [1.0, 2.0], 0.5), "as long a memory"),
        (lambda: control_variate_variance([1.0], [1.0], 0.0), "probability=0.0"),
        (lambda: top_one_bias(np.ones((1, 2)), np.ones((1, 3, 1))), "need patches of that shape"),
    ],
)
def test_arguments_are_checked(call, message):
    with pytest.raises(ConfigError, match=message):
        call()
