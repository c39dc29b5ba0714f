"""ATOMO, spectral: singular triples drawn at random, unbiased."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import ClassVar, final

import numpy as np
import torch

from slimgrad.comm.lowrank.base import Factors, LowRank, not_a_number, scaled_down
from slimgrad.comm.sparsifiers.water_filling import inclusion_probabilities
from slimgrad.core.rng import uniform_words


@final
@dataclass(frozen=True)
class SpectralAtomo(LowRank):
    """Keep sigma_i / p_i u_i v_i^T with probability p_i = min(1, c sigma_i), independently.

    M = sum_i sigma_i u_i v_i^T is the singular value decomposition and the p_i add up to ``rank``.
    The number of kept triples varies.

    Guarantee: unbiased, up to the rounding of a decomposition in float32, with the least variance
    sum_i sigma_i^2 (1 / p_i - 1) that this expected number of triples allows; at most
    (d / rank - 1) ||M||^2 for a matrix whose smaller dimension is d, with equality for equal
    singular values.

    A full decomposition costs far more than sending saves on all but slow links.

    Args:
        rank: expected number of triples, >= 1.

    Raises:
        ConfigError: a rank below 1.

    >>> matrix = torch.outer(torch.tensor([1.0, 2.0]), torch.tensor([3.0, 0.0, 4.0]))
    >>> factors = SpectralAtomo(rank=1).factor(matrix, key=0, start=None)
    >>> torch.allclose(factors.left @ factors.right.T, matrix, atol=1e-5)
    True
    >>> SpectralAtomo(rank=2).variance_bound(64 * 64)
    31.0

    References:
        Wang, Sievert, Liu, Charles, Papailiopoulos, Wright (2018), "ATOMO", algorithm 1, section 5.
    """

    name: ClassVar[str] = "spectralatomo"
    unbiased: ClassVar[bool] = True
    fixed_rank: ClassVar[bool] = False

    rank: int = 4

    def __post_init__(self) -> None:
        self._check()

    def factor(self, matrix: torch.Tensor, key: int, start: torch.Tensor | None) -> Factors:
        """The triples drawn by the stream ``key``; there is no start."""
        unit, scale = scaled_down(matrix)
        if math.isnan(scale):
            return not_a_number(matrix, 1)
        left, sigma, right = torch.linalg.svd(unit, full_matrices=False)
        magnitude = sigma.double().numpy()
        # Beside a larger one, a singular value at the rounding error of the decomposition is zero.
        magnitude[magnitude < magnitude.max(initial=0.0) * 2.0**-24] = 0.0
        probability = inclusion_probabilities(magnitude, float(self.rank))
        uniform = (uniform_words(key, len(magnitude)) >> np.uint64(11)) * 2.0**-53
        kept = np.flatnonzero(uniform < probability)
        weights = torch.from_numpy(magnitude[kept] / probability[kept] * scale).float()
        return Factors(left[:, kept] * weights, right.T[:, kept].contiguous())

    def variance_bound(self, n: int) -> float:
        """sqrt(n) / rank - 1: the smaller dimension of n components is at most sqrt(n)."""
        return max(0.0, math.isqrt(n) / self.rank - 1)
