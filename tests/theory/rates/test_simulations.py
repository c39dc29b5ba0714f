"""Simulated training stays under every bound.

Each test runs 20 seeds side by side and asks that the mean plus six standard errors stays under the
bound, which holds for the expectation: a false alarm would need a deviation of six standard errors
that the bound's own slack does not cover, which is rarer than 1e-6. The seeds are fixed.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field

import numpy as np
import pytest

from slimgrad.theory import exponential_levels, rates, uniform_levels, variance_bound
from slimgrad.theory.rates import QuantizedGradients

SEEDS, RANKS = 20, 4
GRIDS = {
    "exact": None,
    "exponential": exponential_levels(2),
    "ternary": uniform_levels(1),
}
every_grid = pytest.mark.parametrize("grid", GRIDS)


def epsilon(grid, n):
    levels = GRIDS[grid]
    return 0.0 if levels is None else variance_bound(levels, n)


def rounded(vectors, grid, rng):
    """Unbiased rounding of each row to the grid, scaled by its Euclidean norm."""
    if GRIDS[grid] is None:
        return vectors
    levels = np.asarray(GRIDS[grid])
    norms = np.linalg.norm(vectors, axis=-1, keepdims=True)
    r = np.minimum(np.abs(vectors) / np.where(norms > 0, norms, 1), 1.0)
    above = np.clip(np.searchsorted(levels, r, side="right"), 1, len(levels) - 1)
    low, high = levels[above - 1], levels[above]
    magnitude = np.where(rng.random(r.shape) * (high - low) < r - low, high, low)
    return norms * np.sign(vectors) * magnitude


def directions(shape, rng):
    """Vectors of length one, uniform on the sphere."""
    normal = rng.standard_normal(shape)
    return normal / np.linalg.norm(normal, axis=-1, keepdims=True)


@dataclass
class Logistic:
    """Mean logistic loss of 96 points with noisy labels; single points are the gradients."""

    dimension: int = 12
    points: np.ndarray = field(init=False)
    minimum: np.ndarray = field(init=False)

    def __post_init__(self):
        rng = np.random.default_rng(1)
        points = rng.standard_normal((96, self.dimension))
        truth = 2 * points[:, 0] - points[:, 1] + 2 * rng.standard_normal(96)
        self.points = points * np.sign(truth)[:, None]
        self.minimum = np.zeros(self.dimension)
        for _ in range(50):
            chance = 1 / (1 + np.exp(self.points @ self.minimum))
            curvature = (self.points.T * (chance * (1 - chance))) @ self.points
            self.minimum += np.linalg.solve(curvature, self.points.T @ chance)
        assert np.linalg.norm(self.gradient(self.minimum)) < 1e-10

    def value(self, w):
        return np.logaddexp(0, -w @ self.points.T).mean(axis=-1)

    def gradient(self, w):
        return -(1 / (1 + np.exp(w @ self.points.T))) @ self.points / len(self.points)

    def sample(self, w, rng):
        chosen = self.points[rng.integers(len(self.points), size=w.shape[:-1])]
        return -chosen / (1 + np.exp((w * chosen).sum(axis=-1, keepdims=True)))

    @property
    def smoothness(self):
        return float(np.linalg.eigvalsh(self.points.T @ self.points)[-1] / 4 / len(self.points))

    @property
    def second_moment(self):
        return float((self.points**2).sum(axis=1).mean())

    @property
    def gradient_norm(self):
        return float(np.linalg.norm(self.points, axis=1).mean())

    @property
    def start_gap(self):
        return float(self.value(np.zeros(self.dimension)) - self.value(self.minimum))

    def noise(self, grid):
        return QuantizedGradients(
            epsilon(grid, self.dimension),
            world_size=RANKS,
            second_moment=self.second_moment,
            gradient_norm=self.gradient_norm,
        )


@dataclass
class Waves:
    """Sum of 1 - cos(w_i): not convex, smoothness 1, gradient at most sqrt(d) long."""

    dimension: int = 8
    spread: float = 2.0
    smoothness: float = 1.0

    @property
    def start(self):
        return np.full(self.dimension, 2.0)

    @property
    def start_gap(self):
        return float((1 - np.cos(self.start)).sum())

    def gradient(self, w):
        return np.sin(w)

    def sample(self, w, rng):
        return np.sin(w) + self.spread * directions(w.shape, rng)

    def noise(self, grid):
        return QuantizedGradients(
            epsilon(grid, self.dimension),
            world_size=RANKS,
            second_moment=self.dimension + self.spread**2,
            variance=self.spread**2,
            gradient_norm=math.sqrt(self.dimension),
        )


@dataclass
class Bowl:
    """f(w) = ||w||^2 / 2, with gradient noise of constant length: neither w nor f is bounded."""

    dimension: int = 16
    spread: float = 1.0

    def sample(self, w, rng):
        return w + self.spread * directions(w.shape, rng)


def averaged(problem, w, grid, rng):
    """The mean of what the ranks send at the points w (seeds, dimension)."""
    everywhere = np.repeat(w[:, None, :], RANKS, axis=1)
    return rounded(problem.sample(everywhere, rng), grid, rng).mean(axis=1)


def squares(vectors):
    return (vectors**2).sum(axis=-1)


def assert_below(samples, bound):
    """``samples``: one a seed."""
    mean, error = samples.mean(), samples.std(ddof=1) / math.sqrt(len(samples))
    assert mean + 6 * error <= bound, (mean, error, bound)


@every_grid
@pytest.mark.parametrize("steps", [20, 400])
def test_smooth_convex_sgd(grid, steps):
    problem, rng = Logistic(), np.random.default_rng(2)
    setting = {
        "smoothness": problem.smoothness,
        "distance": float(np.linalg.norm(problem.minimum)),
        "variance": problem.noise(grid).averaged_variance_bound,
    }
    step_size = rates.convex_step_size(steps, **setting)
    w = np.zeros((SEEDS, problem.dimension))
    total = np.zeros_like(w)
    for _ in range(steps):
        w = w - step_size * averaged(problem, w, grid, rng)
        total += w
    gaps = problem.value(total / steps) - problem.value(problem.minimum)
    assert_below(gaps, rates.convex_gap_bound(steps, **setting))


@every_grid
def test_the_answered_number_of_steps_reaches_the_convex_target(grid):
    problem, rng = Logistic(), np.random.default_rng(3)
    distance = float(np.linalg.norm(problem.minimum))
    answer = rates.convex_rate(
        1.0, problem.noise(grid), smoothness=problem.smoothness, distance=distance
    )
    w = np.zeros((SEEDS, problem.dimension))
    total = np.zeros_like(w)
    for _ in range(answer.steps):
        w = w - answer.step_size * averaged(problem, w, grid, rng)
        total += w
    gaps = problem.value(total / answer.steps) - problem.value(problem.minimum)
    assert_below(gaps, answer.target)


@every_grid
@pytest.mark.parametrize("share", [0.9, 0.5, 0.05])
def test_smooth_convex_sgd_without_a_bound_on_the_gradient(grid, share):
    problem, rng, steps = Bowl(), np.random.default_rng(13), 200
    eps = epsilon(grid, problem.dimension)
    step_size = share / (1 + eps / RANKS)
    w = np.ones((SEEDS, problem.dimension))
    total = np.zeros_like(w)
    for _ in range(steps):
        total += w
        w = w - step_size * averaged(problem, w, grid, rng)
    bound = rates.convex_relative_gap_bound(
        steps,
        step_size,
        smoothness=1.0,
        distance=math.sqrt(problem.dimension),
        variance=problem.spread**2,
        relative_variance=eps,
        world_size=RANKS,
    )
    assert_below(squares(total / steps) / 2, bound)


@every_grid
@pytest.mark.parametrize("noise", ["bounded", "relative"])
@pytest.mark.parametrize("share", [1.0, 0.1])
def test_nonconvex_sgd(grid, noise, share):
    problem, rng, steps = Waves(), np.random.default_rng(4), 200
    largest, growth = rates.nonconvex_terms(problem.noise(grid), problem.smoothness, noise)
    step_size = share * largest
    w = np.tile(problem.start, (SEEDS, 1))
    measured = np.zeros(SEEDS)
    for _ in range(steps):
        measured += squares(problem.gradient(w)) / steps
        w = w - step_size * averaged(problem, w, grid, rng)
    bound = rates.nonconvex_gradient_bound(
        steps, step_size, start_gap=problem.start_gap, growth=growth
    )
    assert_below(measured, bound)


def bowl_at_the_longest_step(grid, steps):
    """Mean squared gradients of SGD on the bowl, one a seed, and their bound."""
    rng, problem = np.random.default_rng(5), Bowl()
    noise = QuantizedGradients(epsilon(grid, 16), world_size=RANKS, variance=1.0)
    step_size, growth = rates.nonconvex_terms(noise, 1.0, "relative")
    w, measured = np.full((SEEDS, problem.dimension), 0.5), np.zeros(SEEDS)
    gap = float(squares(w[0]) / 2)
    for _ in range(steps):
        measured += squares(w) / steps
        w = w - step_size * averaged(problem, w, grid, rng)
    bound = rates.nonconvex_gradient_bound(steps, step_size, start_gap=gap, growth=growth)
    return measured, bound


def test_the_nonconvex_bound_is_attained_and_needs_the_quantizer_s_part():
    # The longest step leaves nothing of w but the last noise: there the bound is an equality.
    exact, exact_bound = bowl_at_the_longest_step("exact", 2000)
    error = exact.std(ddof=1) / math.sqrt(SEEDS)
    assert abs(exact.mean() - exact_bound) <= 6 * error < 0.02 * exact_bound
    ternary, ternary_bound = bowl_at_the_longest_step("ternary", 2000)
    assert_below(ternary, ternary_bound)
    assert ternary.mean() > 1.5 * exact_bound


@every_grid
@pytest.mark.parametrize(("s", "momentum"), [(0, 0.5), (0, 0.9), (1, 0.9), (10, 0.9)])
def test_convex_momentum(grid, s, momentum):
    problem, rng, steps, scale = Logistic(), np.random.default_rng(6), 200, 0.3
    x = np.zeros((SEEDS, problem.dimension))
    total, z = np.zeros_like(x), x
    for _ in range(steps):
        total += x
        g = averaged(problem, x, grid, rng)
        step = scale / math.sqrt(steps) * g
        z, x = x - s * step, (x - step) + momentum * (x - s * step - z)
    gaps = problem.value(total / steps) - problem.value(problem.minimum)
    bound = rates.momentum_convex_gap_bound(
        steps,
        scale,
        momentum=momentum,
        s=s,
        distance=float(np.linalg.norm(problem.minimum)),
        start_gap=problem.start_gap,
        gradient_norm=problem.gradient_norm,
        variance=problem.noise(grid).averaged_variance_bound,
    )
    assert_below(gaps, bound)


@every_grid
@pytest.mark.parametrize(("s", "momentum"), [(0, 0.5), (0, 0.9), (1, 0.9), (10, 0.9)])
def test_nonconvex_momentum(grid, s, momentum):
    problem, rng, steps = Waves(), np.random.default_rng(7), 200
    noise = problem.noise(grid)
    growth = rates.momentum_growth(
        momentum=momentum,
        s=s,
        smoothness=1.0,
        gradient_norm=noise.gradient_norm,
        variance=noise.averaged_variance_bound,
    )
    step_size = (1 - momentum) / 2
    x = np.tile(problem.start, (SEEDS, 1))
    measured, z = np.zeros(SEEDS), x
    for _ in range(steps):
        measured += squares(problem.gradient(x)) / steps
        step = step_size * averaged(problem, x, grid, rng)
        z, x = x - s * step, (x - step) + momentum * (x - s * step - z)
    shrunk = (1 - momentum) * problem.start_gap
    bound = rates.nonconvex_gradient_bound(steps, step_size, start_gap=shrunk, growth=growth)
    assert_below(measured, bound)


def delayed_run(problem, start, steps, step_size, delay, grid, rng):
    """Mean squared gradient of a server that adds RANKS gradients of points up to ``delay`` old."""
    history = np.repeat(np.tile(start, (SEEDS, 1))[None], delay + 1, axis=0)
    measured, seeds = np.zeros(SEEDS), np.arange(SEEDS)[:, None]
    for _ in range(steps):
        measured += squares(problem.gradient(history[0])) / steps
        ages = rng.integers(delay + 1, size=(SEEDS, RANKS))
        ages[:, 0] = delay
        sent = rounded(problem.sample(history[ages, seeds], rng), grid, rng)
        history = np.concatenate(
            [history[:1] - step_size * sent.sum(axis=1), history[:-1]],
        )
    return measured


@every_grid
@pytest.mark.parametrize("delay", [0, 3, 8])
def test_asynchronous_sgd(grid, delay):
    problem, rng = Waves(), np.random.default_rng(8)
    noise = problem.noise(grid)
    setting = {"smoothness": 1.0, "start_gap": problem.start_gap, "batch": RANKS, "delay": delay}
    answer = rates.asynchronous_rate(8.0, noise, **setting)
    assert answer.met
    measured = delayed_run(problem, problem.start, answer.steps, answer.step_size, delay, grid, rng)
    bound = rates.asynchronous_gradient_bound(
        answer.steps, answer.step_size, variance=noise.message_variance_bound, **setting
    )
    assert bound <= answer.target
    assert_below(measured, bound)


def test_a_step_too_long_for_the_delay_diverges():
    class Exact(Bowl):
        def gradient(self, w):
            return w

        def sample(self, w, rng):
            return w

    runs = [
        delayed_run(Exact(), np.ones(16), 100, 0.2, delay, "exact", np.random.default_rng(9))
        for delay in (0, 8)
    ]
    assert runs[0].max() < 16
    assert runs[1].min() > 1000


def gossip(weights, x, step_size, gradient, grid, rng):
    """One step of quantized differences; x is (seeds, ranks, dimension)."""
    moved = weights @ x - step_size * gradient - x
    return x + rounded(moved, grid, rng)


def disagreement(x):
    return squares(x - x.mean(axis=1, keepdims=True)).sum(axis=1)


@pytest.mark.parametrize(
    ("topology", "ranks"), [("ring", 4), ("ring", 6), ("complete", 4), ("star", 5)]
)
def test_disagreement_shrinks_as_the_contraction_says(topology, ranks):
    weights, rng = rates.mixing_weights(topology, ranks), np.random.default_rng(10)
    found = rates.dcd_condition(weights, epsilon("exponential", 12))
    assert found.contraction_met
    x = rng.standard_normal((SEEDS, ranks, 12))
    before = disagreement(x)
    for step in range(1, 13):
        x = gossip(weights, x, 0.0, 0.0, "exponential", rng)
        factor = (found.rho**2 + found.mu**2 * found.relative_variance) ** step
        assert_below(disagreement(x) / before, factor)


def test_where_the_contraction_fails_the_ranks_drift_apart():
    weights, rng = rates.mixing_weights("ring", 16), np.random.default_rng(11)
    assert not rates.dcd_condition(weights, epsilon("ternary", 64)).contraction_met
    x = rng.standard_normal((SEEDS, 16, 64))
    before = disagreement(x)
    for _ in range(30):
        x = gossip(weights, x, 0.0, 0.0, "ternary", rng)
    assert (disagreement(x) > 1000 * before).all()


@pytest.mark.parametrize("grid", ["exact", "exponential"])
@pytest.mark.parametrize(("topology", "ranks"), [("ring", 4), ("complete", 4), ("ring", 6)])
@pytest.mark.parametrize("share", [1.0, 0.1])
def test_decentralised_sgd(grid, topology, ranks, share):
    # f_i(x) = ||x - b_i||^2 / 2: the mean is least at the mean of the b_i.
    rng, steps, dimension, spread = np.random.default_rng(12), 300, 12, 1.0
    weights = rates.mixing_weights(topology, ranks)
    targets = rng.standard_normal((ranks, dimension))
    targets -= targets.mean(axis=0)
    eps = epsilon(grid, dimension)
    setting = {
        "mixing": rates.spectrum(weights),
        "world_size": ranks,
        "relative_variance": eps,
        "smoothness": 1.0,
        "start_gap": 0.5 * dimension,
        "variance": spread**2,
        "dissimilarity": float(squares(targets).mean()),
    }
    sizes = np.geomspace(1e-4, 1.0, 200)
    bounds = [rates.decentralised_gradient_bound(steps, a, **setting) for a in sizes]
    step_size = share * max(a for a, b in zip(sizes, bounds, strict=True) if math.isfinite(b))
    x, measured = np.ones((SEEDS, ranks, dimension)), np.zeros(SEEDS)
    for _ in range(steps):
        measured += squares(x.mean(axis=1)) / steps
        gradient = x - targets + spread * directions(x.shape, rng)
        x = gossip(weights, x, step_size, gradient, grid, rng)
    assert_below(measured, rates.decentralised_gradient_bound(steps, step_size, **setting))
