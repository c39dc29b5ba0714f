import numpy as np
import pytest
import torch
from scipy import stats

from slimgrad.diagnose.moments import GROUPS, STUDENT_QUANTILE, PairedMoments


def filled(exact, estimates):
    moments = PairedMoments()
    for number, (g, draws) in enumerate(zip(exact, estimates, strict=True)):
        moments.add(number * GROUPS // len(exact), g, list(draws))
    return moments


def test_the_quantile_is_that_of_students_t():
    assert pytest.approx(stats.t.ppf(0.975, GROUPS - 1), rel=1e-9) == STUDENT_QUANTILE


def test_moments_equal_their_definitions():
    generator = torch.Generator().manual_seed(1)
    exact = torch.randn(24, 5, generator=generator, dtype=torch.float64)
    draws = exact[:, None] + torch.randn(24, 2, 5, generator=generator, dtype=torch.float64) + 0.3
    moments = filled(exact, draws)
    assert moments.count == 24
    assert moments.mean_square_norm == pytest.approx(float(exact.square().sum(1).mean()))
    assert moments.batch_noise == pytest.approx(float(exact.var(0, correction=1).sum()))
    assert moments.draw_variance == pytest.approx(float(draws.var(1, correction=1).sum(1).mean()))
    error = (draws - exact[:, None]).square().sum(2).mean()
    assert moments.mean_square_error == pytest.approx(float(error))
    means = (draws.mean(1) - exact).view(GROUPS, 3, 5).mean(1)
    pairs = [means[i] @ means[j] for i in range(GROUPS) for j in range(GROUPS) if i != j]
    square, half = moments.squared_bias()
    assert square == pytest.approx(float(torch.stack(pairs).mean()))
    left_out = []
    for k in range(GROUPS):
        rest = [i for i in range(GROUPS) if i != k]
        kept = [float(means[i] @ means[j]) for i in rest for j in rest if i != j]
        left_out.append(np.mean(kept))
    variance = (GROUPS - 1) / GROUPS * np.sum((left_out - np.mean(left_out)) ** 2)
    assert half == pytest.approx(STUDENT_QUANTILE * np.sqrt(variance))


def test_intervals_hold_what_they_promise():
    # 400 experiments. Without bias the interval must contain 0; each misses with probability at
    # most 5 %, so 49 or more misses have probability below 1e-6. With a true squared bias of 1.25
    # it must contain that; jackknife and t are approximate here, so 60 misses are allowed.
    generator = torch.Generator().manual_seed(2)
    misses = {0.0: 0, 0.5: 0}
    for bias in misses:
        for _ in range(400):
            exact = torch.zeros(32, 5, dtype=torch.float64)
            noise = torch.randn(32, 1, 5, generator=generator, dtype=torch.float64)
            square, half = filled(exact, noise + bias).squared_bias()
            misses[bias] += not square - half <= 5 * bias**2 <= square + half
    assert misses[0.0] < 49
    assert misses[0.5] < 60


def test_zero_estimates_have_no_cosine():
    exact = torch.ones(16, 3, dtype=torch.float64)
    moments = filled(exact, torch.zeros(16, 1, 3, dtype=torch.float64))
    assert np.isnan(moments.mean_cosine)
    assert moments.squared_bias() == pytest.approx((3.0, 0.0))
