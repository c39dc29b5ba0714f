import math

import pytest

from slimgrad.theory import dithered_variance_bound


def one_hot_variance(step_rms, m, n):
    """n step^2 / 12 of the vector (1, 0, ..., 0), whose rms is 1 / sqrt(n)."""
    return n * max(step_rms / math.sqrt(n), 1 / m) ** 2 / 12


@pytest.mark.parametrize(("step_rms", "m", "n"), [(1.0, 7, 512), (1.0, 7, 49), (0.5, 3, 9)])
def test_one_component_attains_it(step_rms, m, n):
    assert dithered_variance_bound(step_rms, n, m) == pytest.approx(
        one_hot_variance(step_rms, m, n)
    )


@pytest.mark.parametrize("peak", [1.0, 2.0, 6.9, 7.6, 20.0])
def test_no_vector_exceeds_it(peak):
    """n - 1 equal components and a larger one."""
    n, m, step_rms = 512, 7, 1.0
    energy = n - 1 + peak**2
    step = max(step_rms * math.sqrt(energy / n), peak / m)
    exact = n * step**2 / 12 / energy
    assert exact <= dithered_variance_bound(step_rms, n, m) * (1 + 1e-12)
    assert (exact == pytest.approx(step_rms**2 / 12)) == (peak < 7)
