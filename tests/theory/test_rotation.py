import itertools

import numpy as np
import pytest

from slimgrad.core.errors import ConfigError
from slimgrad.theory import normal_levels, rotated_variance_bound


def hadamard(order):
    matrix = np.ones((1, 1))
    while len(matrix) < order:
        matrix = np.block([[matrix, matrix], [matrix, -matrix]])
    return matrix


def mean_error(vector, levels):
    """Exact mean over all signs of the relative square error."""
    ends = (np.array(levels[1:]) + np.array(levels[:-1])) / 2
    signs = np.array(list(itertools.product([1.0, -1.0], repeat=len(vector))))
    rotated = (signs * vector) @ hadamard(len(vector)) / np.linalg.norm(vector)
    nearest = np.array(levels)[np.digitize(np.abs(rotated), ends)]
    projection = (np.abs(rotated) * nearest).sum(1)
    cosine = projection**2 / ((rotated**2).sum(1) * (nearest**2).sum(1))
    return float((1 / cosine - 1).mean())


@pytest.mark.parametrize("bits", [1, 2, 3, 4])
def test_no_short_vector_exceeds_the_bound(bits):
    levels = normal_levels(bits)
    generator = np.random.default_rng(3)
    vectors = [generator.standard_normal(8) ** power for power in (1, 1, 3, 5)]
    vectors += [np.eye(8)[0], np.ones(8), np.eye(8)[0] + 0.9 * np.eye(8)[5]]
    worst = max(mean_error(vector, levels) for vector in vectors)
    assert 0.0 < worst <= rotated_variance_bound(levels, 8)


def test_the_bound_grows_with_the_block_and_falls_with_bits():
    bounds = [rotated_variance_bound(normal_levels(bits), 512) for bits in (1, 2, 3, 4)]
    assert bounds == sorted(bounds, reverse=True)
    assert rotated_variance_bound(normal_levels(4), 8) < bounds[-1]


@pytest.mark.parametrize("levels", [(), (0.0, 1.0), (0.5, 0.5), (1.0, 0.5)])
def test_levels_must_ascend(levels):
    with pytest.raises(ConfigError, match="levels must ascend strictly from above 0"):
        rotated_variance_bound(levels, 512)


@pytest.mark.parametrize("block", [0, 1.5, True])
def test_the_block_must_be_a_count(block):
    with pytest.raises(ConfigError, match="block must be an integer >= 1"):
        rotated_variance_bound((1.0,), block)
