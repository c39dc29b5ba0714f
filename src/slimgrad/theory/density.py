"""How normalised magnitudes r = |v_i| / norm(v) are distributed: atoms with weights."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from functools import cached_property

import numpy as np

from slimgrad.core.errors import ConfigError
from slimgrad.theory.arguments import (
    checked_array,
    checked_grid,
    checked_integer,
    checked_norm,
    checked_weights,
)

Numbers = Sequence[float] | np.ndarray


class MagnitudeDensity:
    """A discrete measure on [0, 1] with its cumulative mass, first and second moment.

    Args:
        magnitudes: r >= 0, at most 1, in any order.
        weights: >= 0, one for each magnitude; None for equal ones. With the squared norm of its
            bucket as the weight of a component, ``expected_variance`` is relative to ||v||^2.

    Raises:
        ConfigError: a magnitude outside [0, 1], weights that are none, or unequal lengths.

    >>> MagnitudeDensity([0.5, 0.25, 0.5]).cdf(0.25)
    0.3333333333333333
    """

    def __init__(self, magnitudes: Numbers, weights: Numbers | None = None) -> None:
        r = checked_array("magnitudes", magnitudes)
        if r.min() < 0 or r.max() > 1:
            raise ConfigError(
                f"magnitudes must be from 0 to 1, got {r.min()} to {r.max()}; divide by the norm"
            )
        w = np.ones_like(r) if weights is None else checked_weights("weights", weights)
        if w.shape != r.shape:
            raise ConfigError(f"{len(r)} magnitudes need as many weights, got {len(w)}")
        order = np.argsort(r, kind="stable")
        self.magnitudes = r[order]
        self.weights = w[order] / w.sum()

    @classmethod
    def from_histogram(cls, edges: Numbers, counts: Numbers) -> MagnitudeDensity:
        """Each bin of a histogram becomes an atom at its middle.

        The error of a variance is at most a twelfth of a bin's squared width for each component.

        Args:
            edges: ascending, from 0 to 1.
            counts: >= 0, one less than edges.

        Raises:
            ConfigError: edges that do not ascend from 0 to 1, or unequal lengths.

        >>> MagnitudeDensity.from_histogram([0, 0.5, 1], [3, 1]).magnitudes.tolist()
        [0.25, 0.75]
        """
        grid = np.asarray(checked_grid(edges))
        return cls((grid[:-1] + grid[1:]) / 2, counts)

    @classmethod
    def from_cdf(
        cls, cdf: Callable[[np.ndarray], np.ndarray], points: int = 4096
    ) -> MagnitudeDensity:
        """Atoms at the middles of ``points`` equal steps, weighted by what ``cdf`` gains in each.

        Args:
            cdf: non-decreasing on [0, 1]; takes and returns float64 arrays.
            points: >= 2.

        Raises:
            ConfigError: a cdf that falls or is not finite, or a bad number of points.

        >>> round(MagnitudeDensity.from_cdf(lambda r: r**2).cdf(0.5), 3)
        0.25
        """
        edges = np.linspace(0.0, 1.0, checked_integer("points", points, 2, 2**24) + 1)
        return cls.from_histogram(edges, np.diff(cdf(edges)))

    @classmethod
    def from_vector(cls, vector: Numbers, bucket_size: int, norm: str = "l2") -> MagnitudeDensity:
        """The magnitudes of a vector cut into buckets, each weighted by its squared norm.

        Args:
            vector: flat, finite, not all zero.
            bucket_size: components that share a norm, >= 1; the last bucket may be shorter.
            norm: "l2" or "linf", of the bucket.

        Raises:
            ConfigError: a vector that is empty, zero or not finite, a bad size, an unknown norm.

        >>> MagnitudeDensity.from_vector([3, -4, 0, 2], 2).magnitudes.tolist()
        [0.0, 0.6, 0.8, 1.0]
        """
        size = checked_integer("bucket_size", bucket_size, 1)
        v = np.abs(checked_array("vector", vector))
        if checked_norm(norm) == "linf":
            norms = np.maximum.reduceat(v, np.arange(0, len(v), size))
        else:
            norms = np.sqrt(np.add.reduceat(v**2, np.arange(0, len(v), size)))
        if not norms.any():
            raise ConfigError("the vector is zero, so its magnitudes have no distribution")
        scale = np.repeat(norms, size)[: len(v)]
        kept = scale > 0
        return cls(np.minimum(v[kept] / scale[kept], 1.0), (scale[kept] / norms.max()) ** 2)

    @cached_property
    def _sums(self) -> np.ndarray:
        """Mass, first and second moment of all atoms before each position."""
        r, w = self.magnitudes, self.weights
        sums = np.zeros((3, len(r) + 1))
        np.cumsum(np.stack([w, w * r, w * r**2]), axis=1, out=sums[:, 1:])
        return sums

    def moments(self, points: Numbers) -> np.ndarray:
        """F(x), integral of r dF and of r^2 dF up to and with x: one row each."""
        return self._sums[:, np.searchsorted(self.magnitudes, points, side="right")]

    def cdf(self, point: float) -> float:
        """The share of weight at magnitudes up to and with ``point``."""
        return float(self.moments([point])[0, 0])

    def quantile(self, shares: Numbers) -> np.ndarray:
        """The least magnitudes whose cdf reaches ``shares``."""
        position = np.searchsorted(self._sums[0, 1:], shares, side="left")
        return self.magnitudes[np.minimum(position, len(self.magnitudes) - 1)]

    @property
    def second_moment(self) -> float:
        """Integral of r^2 dF."""
        return float(self._sums[2, -1])


def expected_variance(levels: Sequence[float], density: MagnitudeDensity) -> float:
    """Variance of unbiased rounding to ``levels`` for magnitudes of this distribution.

    integral phi(r) dF / integral r^2 dF with phi(r) = (r - l_j)(l_{j+1} - r) in bin j: the mean of
    E||Q(v) - v||^2 over that of ||v||^2 when atoms are weighted by squared bucket norms. An
    equality for the given density.

    Args:
        levels: ascending grid of non-negative levels, 0 and 1 included.
        density: distribution of the normalised magnitudes.

    Returns:
        Variance relative to the squared norm.

    Raises:
        ConfigError: bad levels, or a density with all its weight at 0.

    >>> density = MagnitudeDensity.from_vector([3.0, 4.0], bucket_size=2)
    >>> round(25 * expected_variance((0, 0.25, 0.5, 1), density), 12)
    2.5
    """
    grid = np.asarray(checked_grid(levels))
    if density.second_moment == 0:
        raise ConfigError("all magnitudes are zero, so a relative variance has no meaning")
    return _expected_variance(grid, density)


def _expected_variance(grid: np.ndarray, density: MagnitudeDensity) -> float:
    mass, first, second = np.diff(density.moments(grid), axis=1)
    low, high = grid[:-1], grid[1:]
    total = ((low + high) * first - second - low * high * mass).sum()
    return max(0.0, float(total)) / density.second_moment


def truncated_normal_mixture(
    means: Numbers, scales: Numbers, weights: Numbers
) -> Callable[[np.ndarray], np.ndarray]:
    """Cumulative distribution of a mixture of normals, each restricted to [0, 1].

    Args:
        means: one for each part.
        scales: standard deviations before truncation, > 0.
        weights: >= 0, divided by their sum.

    Returns:
        A function of float64 arrays, for ``MagnitudeDensity.from_cdf``.

    Raises:
        ConfigError: unequal lengths, a scale that is not positive, or a part without weight in
            [0, 1].

    >>> cdf = truncated_normal_mixture([0.5], [0.1], [1])
    >>> [round(float(x), 6) for x in cdf(np.array([0.0, 0.5, 1.0]))]
    [0.0, 0.5, 1.0]

    References:
        Faghri, Tabrizian, Markov, Alistarh, Roy, Ramezani-Kebrya (2020), section 3.
    """
    centre, scale = checked_array("means", means), checked_array("scales", scales)
    share = checked_weights("weights", weights)
    if not centre.shape == scale.shape == share.shape:
        raise ConfigError(
            f"means, scales and weights must be equally many, "
            f"got {len(centre)}, {len(scale)} and {len(share)}"
        )
    if scale.min() <= 0:
        raise ConfigError(f"scales must be > 0, got {scale.min()}")
    erf = np.frompyfunc(math.erf, 1, 1)

    def normal(r: np.ndarray) -> np.ndarray:
        z = (np.asarray(r)[..., None] - centre) / (scale * math.sqrt(2))
        return np.asarray(erf(z), dtype=np.float64)

    below, inside = normal(np.zeros(1)), normal(np.ones(1)) - normal(np.zeros(1))
    if inside.min() <= 0:
        raise ConfigError("a part of the mixture has no weight between 0 and 1; leave it out")
    return lambda r: ((normal(r) - below) / inside) @ (share / share.sum())
