"""PowerSGD: one power iteration from a warm start."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import ClassVar, final

import numpy as np
import torch

from slimgrad import kernels
from slimgrad.comm.lowrank.base import Factors, LowRank, not_a_number, scaled_down
from slimgrad.core.rng import normal

# Products in float32 leave errors of this order in a column that depends on others.
_DEPENDENT = 1e-5


@final
@dataclass(frozen=True)
class PowerSGD(LowRank):
    """Send P and Q = M^T P, where the orthonormal columns of P span M Q_before.

    The Q of one step starts the next one for the same parameter, so that P converges to the
    leading left singular vectors of a gradient that changes slowly. Every rank sends factors of
    its own gradient; the variant that averages the factors between two all-reduces is another
    algorithm.

    Guarantee: biased; P P^T M is a projection, so that ||C(M) - M|| <= ||M||, and at best
    sum over i > rank of sigma_i^2. To be used with feedback. A zero matrix gives zero, a rank
    above the smaller dimension is cut to it, and nothing is divided by a norm that may be zero:
    a column of P that depends on others is zero, and starts anew in the next step.

    Args:
        rank: columns of P and Q, >= 1.

    Raises:
        ConfigError: a rank below 1.

    >>> matrix = torch.outer(torch.tensor([1.0, 2.0]), torch.tensor([3.0, 0.0, 4.0]))
    >>> factors = PowerSGD(rank=1).factor(matrix, key=0, start=None)
    >>> torch.allclose(factors.left @ factors.right.T, matrix)
    True

    References:
        Vogels, Karimireddy, Jaggi (2019), "PowerSGD", algorithm 1.
    """

    name: ClassVar[str] = "powersgd"
    unbiased: ClassVar[bool] = False
    fixed_rank: ClassVar[bool] = True

    rank: int = 4

    def __post_init__(self) -> None:
        self._check()

    def factor(self, matrix: torch.Tensor, key: int, start: torch.Tensor | None) -> Factors:
        """One power iteration on ``matrix``, from ``start`` or a random matrix."""
        rank = min(self.rank, *matrix.shape)
        unit, scale = scaled_down(matrix)
        if math.isnan(scale):
            return not_a_number(matrix, rank)
        begin = _filled(start, matrix.shape[1], rank, key)
        left = orthonormal(kernels.thin_product(unit, begin))
        right = kernels.thin_product(unit, left, transposed=True)
        return Factors(left, right * scale, right)

    def contraction_bound(self, n: int) -> float:
        """1: nothing more is known of a matrix whose singular vectors are new."""
        return 1.0 if n else 0.0


def orthonormal(columns: torch.Tensor) -> torch.Tensor:
    """Orthonormal columns with the span of ``columns`` (m, r); zero where one depends on others.

    Gram and Schmidt's method in float64, twice, which is enough (Giraud, Langou, Rozloznik, 2005).
    A column of which rounding errors alone would be left becomes zero.

    >>> orthonormal(torch.tensor([[3.0, 6.0, 0.0], [4.0, 8.0, 1.0]]))
    tensor([[ 0.6000,  0.0000, -0.8000],
            [ 0.8000,  0.0000,  0.6000]])
    """
    done = columns.double().numpy().T.copy()
    for index, column in enumerate(done):
        before = _norm(column)
        for _ in range(2):
            for other in done[:index]:
                column -= np.einsum("i,i->", other, column) * other
        after = _norm(column)
        if after <= _DEPENDENT * before:
            column[:] = 0
        else:
            column /= after
    return torch.from_numpy(done.T.astype(np.float32, order="C"))


def _norm(vector: np.ndarray) -> float:
    return math.sqrt(np.einsum("i,i->", vector, vector))


def _filled(start: torch.Tensor | None, columns: int, rank: int, key: int) -> torch.Tensor:
    """``start`` cut or filled up to (columns, rank); a column of zeros starts anew."""
    fresh = normal(key, (columns, rank))
    if start is None or start.shape[0] != columns:
        return fresh
    for index in range(min(rank, start.shape[1])):
        if start[:, index].any():
            fresh[:, index] = start[:, index]
    return fresh
