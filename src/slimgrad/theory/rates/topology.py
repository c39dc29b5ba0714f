"""Who averages with whom: mixing matrices of decentralised training and their spectrum."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from slimgrad.core.errors import ConfigError
from slimgrad.core.registry import unknown_name_message

MOST_RANKS = 512
_TOLERANCE = 1e-9

Matrix = npt.NDArray[np.float64]


@dataclass(frozen=True)
class Spectrum:
    """What a theorem needs to know of a mixing matrix.

    Attributes:
        rho: largest |eigenvalue| but for the one that is 1; below 1 iff the ranks agree in the end.
        mu: largest |eigenvalue - 1|.
    """

    rho: float
    mu: float


def ring_weights(world_size: int) -> Matrix:
    """Each rank averages itself and its two neighbours on a ring, all alike.

    >>> ring_weights(4)[0].round(3).tolist()
    [0.333, 0.333, 0.0, 0.333]
    """
    links = np.zeros((world_size, world_size), dtype=bool)
    ranks = np.arange(world_size)
    links[ranks, (ranks + 1) % world_size] = True
    return _metropolis(links | links.T)


def complete_weights(world_size: int) -> Matrix:
    """Each rank takes the mean of all: one step of averaging is exact.

    >>> complete_weights(2).tolist()
    [[0.5, 0.5], [0.5, 0.5]]
    """
    return np.full((world_size, world_size), 1.0 / world_size)


def star_weights(world_size: int) -> Matrix:
    """Rank 0 is linked to every other; Metropolis weights 1 / (1 + the larger degree).

    >>> star_weights(3).round(3).tolist()[1]
    [0.333, 0.667, 0.0]
    """
    links = np.zeros((world_size, world_size), dtype=bool)
    links[0] = links[:, 0] = True
    return _metropolis(links)


def hypercube_weights(world_size: int) -> Matrix:
    """Ranks whose numbers differ in one bit are linked; equal weights.

    Raises:
        ConfigError: ``world_size`` is no power of two.

    >>> hypercube_weights(4)[0].round(3).tolist()
    [0.333, 0.333, 0.333, 0.0]
    """
    if world_size & (world_size - 1):
        raise ConfigError(f"a hypercube needs a power of two of ranks, got {world_size}")
    ranks = np.arange(world_size)
    differing = ranks[:, None] ^ ranks
    return _metropolis((differing != 0) & (differing & (differing - 1) == 0))


TOPOLOGIES: dict[str, Callable[[int], Matrix]] = {
    "complete": complete_weights,
    "hypercube": hypercube_weights,
    "ring": ring_weights,
    "star": star_weights,
}


def mixing_weights(topology: str, world_size: int) -> Matrix:
    """The doubly stochastic matrix of a named topology.

    Args:
        topology: "complete", "hypercube", "ring" or "star".
        world_size: number of ranks, 1 to 512.

    Returns:
        (world_size, world_size) float64.

    Raises:
        ConfigError: an unknown name, or too few or too many ranks.

    >>> mixing_weights("ring", 3).shape
    (3, 3)
    """
    if topology not in TOPOLOGIES:
        raise ConfigError(unknown_name_message("topology", topology, TOPOLOGIES))
    integral = isinstance(world_size, int) and not isinstance(world_size, bool)
    if not integral or not 1 <= world_size <= MOST_RANKS:
        raise ConfigError(
            f"a topology needs from 1 to {MOST_RANKS} ranks, got world_size={world_size!r}"
        )
    return TOPOLOGIES[topology](world_size)


def checked_mixing(weights: npt.ArrayLike) -> Matrix:
    """``weights`` as float64, if symmetric and doubly stochastic.

    Raises:
        ConfigError: it is not; the text says what is wrong.

    >>> checked_mixing([[0.5, 0.5], [0.5, 0.5]]).shape
    (2, 2)
    """
    try:
        matrix = np.asarray(weights, dtype=np.float64)
    except (TypeError, ValueError):
        raise ConfigError("a mixing matrix must be a square array of numbers") from None
    wrong = _what_is_wrong(matrix)
    if wrong:
        raise ConfigError(
            f"a mixing matrix must be symmetric with rows of non-negative weights that add up "
            f"to 1, but {wrong}"
        )
    return matrix


def spectrum(weights: npt.ArrayLike) -> Spectrum:
    """Both numbers of a symmetric doubly stochastic matrix.

    Raises:
        ConfigError: it is not symmetric and doubly stochastic.

    >>> found = spectrum(ring_weights(4))
    >>> round(found.rho, 4), round(found.mu, 4)
    (0.3333, 1.3333)

    References:
        Tang, Gan, Zhang, Zhang, Liu (2018), section 3.
    """
    eigenvalues = np.linalg.eigvalsh(checked_mixing(weights))[:-1]  # ascending; the last is 1
    if not eigenvalues.size:
        return Spectrum(rho=0.0, mu=0.0)
    # Rounding of the eigenvalue solver must not make a complete graph's 0 matter.
    cleaned = np.where(np.abs(eigenvalues) < _TOLERANCE, 0.0, eigenvalues)
    return Spectrum(
        rho=float(min(np.abs(cleaned).max(), 1.0)), mu=float(np.abs(cleaned - 1.0).max())
    )


def _metropolis(links: npt.NDArray[np.bool_]) -> Matrix:
    """Weight 1 / (1 + the larger degree) on each link, the rest of each row on the diagonal."""
    links = links.copy()
    np.fill_diagonal(links, False)
    degrees = links.sum(axis=1)
    weights = links / (1.0 + np.maximum(degrees[:, None], degrees))
    np.fill_diagonal(weights, 1.0 - weights.sum(axis=1))
    return weights


def _what_is_wrong(matrix: Matrix) -> str:
    if matrix.ndim != 2 or matrix.shape[0] != matrix.shape[1] or not matrix.size:
        return f"its shape is {matrix.shape}"
    if len(matrix) > MOST_RANKS:
        return f"it has {len(matrix)} rows, at most {MOST_RANKS} are allowed"
    if not np.isfinite(matrix).all():
        return "it holds a number that is not finite"
    if matrix.min() < -_TOLERANCE:
        return f"it holds {matrix.min():g}"
    worst = int(np.abs(matrix.sum(axis=1) - 1).argmax())
    if abs(matrix[worst].sum() - 1) > _TOLERANCE:
        return f"row {worst} adds up to {matrix[worst].sum():g}"
    if np.abs(matrix - matrix.T).max() > _TOLERANCE:
        return "it is not symmetric"
    return ""
