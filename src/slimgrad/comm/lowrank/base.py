"""What a low-rank method is, and what it makes."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import ClassVar

import torch

from slimgrad.core.errors import ConfigError

# A sum of 2**31 products with numbers below 2**48 is finite in float32.
_SAFE_EXPONENT = 48


@dataclass(frozen=True)
class Factors:
    """A matrix as left @ right.T.

    Attributes:
        left: float32 (rows, rank).
        right: float32 (columns, rank).
        start: what the method wants to begin with the next time it sees this parameter,
            (columns, rank), or None to keep what it had.
    """

    left: torch.Tensor
    right: torch.Tensor
    start: torch.Tensor | None = None


class LowRank(ABC):
    """Replaces a matrix by the product of two thin ones.

    Attributes:
        name: registry name, equal to the file name.
        strength: name of the setting that says how much is kept.
        fixed_rank: whether the rank follows from the shape of the matrix alone.
        rank: of the product, or its expected value.
    """

    name: ClassVar[str]
    strength: ClassVar[str] = "rank"
    unbiased: ClassVar[bool]
    fixed_rank: ClassVar[bool]
    rank: int

    @abstractmethod
    def factor(self, matrix: torch.Tensor, key: int, start: torch.Tensor | None) -> Factors:
        """The factors of a float32 ``matrix``, with the random stream ``key``.

        ``start`` is what the last call for this parameter returned under this name, if any. A
        matrix with a component that is not finite gives factors of NaN and no start.
        """

    def shape(self, shape: tuple[int, ...]) -> tuple[int, int] | None:
        """Rows and columns of a tensor of ``shape``; None if its factors would save nothing.

        The first dimension counts the rows, all others together the columns.
        """
        if len(shape) < 2:
            return None
        rows, columns = shape[0], torch.Size(shape[1:]).numel()
        if self.rank * (rows + columns) >= rows * columns:
            return None
        return rows, columns

    def variance_bound(self, n: int) -> float:
        """Bound on E||C(M) - M||^2 / ||M||^2 over all M of n components, if C is unbiased."""
        raise ConfigError(f"{self!r} is biased; ask for its contraction_bound")

    def contraction_bound(self, n: int) -> float:
        """Bound on E||C(M) - M||^2 / ||M||^2 over all M of n components, if C is biased."""
        raise ConfigError(f"{self!r} is unbiased; ask for its variance_bound")

    def _check(self) -> None:
        if isinstance(self.rank, bool) or not isinstance(self.rank, int) or self.rank < 1:
            raise ConfigError(f"{type(self).__name__} needs a rank >= 1, got rank={self.rank!r}")


def not_a_number(matrix: torch.Tensor, rank: int) -> Factors:
    """Factors of NaN with the sizes that ``matrix`` and ``rank`` give."""
    rows, columns = matrix.shape
    nan = float("nan")
    return Factors(torch.full((rows, rank), nan), torch.full((columns, rank), nan))


def scaled_down(matrix: torch.Tensor) -> tuple[torch.Tensor, float]:
    """The matrix divided by a power of two, and that; sums of products with it do not overflow.

    1 unless components are very large or very small; NaN if one of them is not finite.

    >>> scaled_down(torch.tensor([[0.0, -4.0], [2.0, 1.0]]))[1]
    1.0
    >>> scaled_down(torch.tensor([[3e38, -1e38]]))
    (tensor([[ 1.7632, -0.5877]]), 1.7014118346046923e+38)
    """
    content = matrix.numpy()
    largest = max(float(content.max(initial=0.0)), -float(content.min(initial=0.0)))
    if not largest < math.inf:
        return matrix, math.nan
    exponent = math.frexp(largest)[1] - 1  # so that 2**exponent is a float32 too
    if largest == 0 or abs(exponent) < _SAFE_EXPONENT:
        return matrix, 1.0
    # In float64, because the inverse of a denormal is infinite in float32.
    return (matrix.double() * 2.0**-exponent).float(), 2.0**exponent
