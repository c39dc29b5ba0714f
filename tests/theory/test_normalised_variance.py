import math

import numpy as np
import pytest

from slimgrad.core.errors import ConfigError
from slimgrad.theory import noise_to_signal, normalised_variance_printed


def test_the_published_measure_saturates_where_the_other_does_not():
    # 200,000 components of pure noise; the ratio of one deviates by less than 0.5, so six
    # deviations of the mean are 0.007. False alarms are below 1e-8.
    rng = np.random.default_rng(0)
    noise = rng.standard_normal((20, 200_000))
    assert normalised_variance_printed(noise[:10], noise[10:]) == pytest.approx(1.125, abs=0.007)
    fewer = normalised_variance_printed(noise[:10], noise[10:16])
    assert fewer == pytest.approx(1 + 6 / 10 / 4, abs=0.01)
    published, ratios = [], []
    for size in (0.05, 0.1, 1.0):
        gradients = noise + size
        published.append(normalised_variance_printed(gradients[:10], gradients[10:]))
        ratios.append(noise_to_signal(gradients[:10], gradients[10:]))
    assert published[0] > 1.09
    # The mean product deviates by sqrt(2) (size + 0.1) / sqrt(10 n): under 0.001 of size^2 = 0.0025
    # would be needed for 5 %; six deviations here are 0.0006 at size 0.05.
    assert ratios[0] == pytest.approx(400, rel=0.35)
    assert ratios[1] == pytest.approx(100, rel=0.1)
    assert ratios[2] == pytest.approx(1, rel=0.02)


def test_no_mean_is_told_as_infinity():
    assert noise_to_signal([[1.0, 0.0]], [[-1.0, 0.0]]) == math.inf


@pytest.mark.parametrize("measure", [normalised_variance_printed, noise_to_signal])
def test_wrong_arrays_are_named(measure):
    with pytest.raises(ConfigError, match="first has 2 components and fresh 3"):
        measure(np.ones((2, 2)), np.ones((2, 3)))
    with pytest.raises(ConfigError, match="fresh"):
        measure(np.ones((2, 2)), np.full((2, 2), np.nan))
