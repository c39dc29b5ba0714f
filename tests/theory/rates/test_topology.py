from __future__ import annotations

import math

import numpy as np
import pytest

from slimgrad.core.errors import ConfigError
from slimgrad.theory.rates.topology import (
    MOST_RANKS,
    TOPOLOGIES,
    checked_mixing,
    mixing_weights,
    spectrum,
)


@pytest.mark.parametrize("topology", TOPOLOGIES)
@pytest.mark.parametrize("ranks", [1, 2, 4, 16])
def test_every_topology_is_doubly_stochastic_and_connected(topology, ranks):
    weights = checked_mixing(mixing_weights(topology, ranks))
    assert weights.shape == (ranks, ranks)
    assert spectrum(weights).rho < 1


@pytest.mark.parametrize("ranks", [3, 4, 5, 8, 13])
def test_the_spectrum_of_rings(ranks):
    # Circulant with weights 1/3: eigenvalues (1 + 2 cos(2 pi k / n)) / 3.
    found = spectrum(mixing_weights("ring", ranks))
    values = [(1 + 2 * math.cos(2 * math.pi * k / ranks)) / 3 for k in range(1, ranks)]
    assert found.rho == pytest.approx(max(map(abs, values)))
    assert found.mu == pytest.approx(max(1 - value for value in values))


def test_the_spectrum_of_other_topologies():
    complete, star, cube = (
        spectrum(mixing_weights(t, 8)) for t in ("complete", "star", "hypercube")
    )
    assert (complete.rho, complete.mu) == (0.0, 1.0)
    assert (star.rho, star.mu) == pytest.approx((7 / 8, 1.0))
    assert (cube.rho, cube.mu) == pytest.approx((0.5, 1.5))


@pytest.mark.parametrize(
    ("weights", "fact"),
    [
        ([], "its shape is"),
        (0.5, "its shape is"),
        ([[0.5, 0.5]], "its shape is"),
        ("ring", "square array of numbers"),
        ([[1.0], [1.0, 2.0]], "square array of numbers"),
        ([[0.5, math.nan], [0.5, 0.5]], "not finite"),
        ([[1.5, -0.5], [-0.5, 1.5]], "holds -0.5"),
        ([[0.5, 0.5], [0.5, 0.4]], "row 1 adds up to 0.9"),
        ([[0.5, 0.5, 0], [0, 0.5, 0.5], [0.5, 0, 0.5]], "not symmetric"),
        (np.eye(MOST_RANKS + 1), f"at most {MOST_RANKS}"),
    ],
)
def test_a_matrix_that_does_not_mix_is_refused(weights, fact):
    with pytest.raises(ConfigError, match=fact):
        spectrum(weights)


@pytest.mark.parametrize("ranks", [0, -1, 2.0, True, MOST_RANKS + 1])
def test_a_bad_number_of_ranks_is_named(ranks):
    with pytest.raises(ConfigError, match=f"world_size={ranks!r}"):
        mixing_weights("ring", ranks)


def test_unknown_topologies_and_odd_hypercubes_are_named():
    with pytest.raises(ConfigError, match="did you mean 'ring'"):
        mixing_weights("rings", 4)
    with pytest.raises(ConfigError, match="power of two of ranks, got 6"):
        mixing_weights("hypercube", 6)
