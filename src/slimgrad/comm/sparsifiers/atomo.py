"""ATOMO, entry-wise: the unbiased sparsifier of least variance."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar, final

import numpy as np
import torch

from slimgrad.comm.sparsifiers.base import Kept, Sparsifier, check_keep
from slimgrad.comm.sparsifiers.water_filling import inclusion_probabilities
from slimgrad.core.rng import uniform_words


@final
@dataclass(frozen=True)
class Atomo(Sparsifier):
    """Keep v_i / p_i with probability p_i = min(1, c |v_i|), where the p_i add up to keep n.

    Components are drawn independently, so that the number of kept ones varies.

    Guarantee: unbiased, with the least variance sum_i v_i^2 (1 / p_i - 1) that this expected
    number allows; at most (1 / keep - 1) ||v||^2, with equality for equal magnitudes.

    Beside a component that is not finite only such components are kept.

    Args:
        keep: expected share of the components, above 0 and at most 1.

    Raises:
        ConfigError: a share out of range.

    >>> Atomo(keep=0.5).select(torch.tensor([0.0, -4.0, 2.0, 0.0]), key=0).values
    tensor([-4.,  2.])
    >>> Atomo(keep=0.01).variance_bound(1000)
    99.0

    References:
        Wang, Sievert, Liu, Charles, Papailiopoulos, Wright (2018), "ATOMO", algorithm 1.
    """

    name: ClassVar[str] = "atomo"

    keep: float = 0.01

    def __post_init__(self) -> None:
        check_keep(self, self.keep)

    @property
    def unbiased(self) -> bool:
        """True."""
        return True

    def select(self, vector: torch.Tensor, key: int) -> Kept:
        """The components drawn by the stream ``key``."""
        content = vector.numpy()
        n = len(content)
        not_finite = ~np.isfinite(content)
        if not_finite.any():
            places = np.flatnonzero(not_finite)
            values = content[places]
        else:
            magnitude = np.abs(content).astype(np.float64)
            probability = inclusion_probabilities(magnitude, self.keep * n)
            uniform = (uniform_words(key, n) >> np.uint64(11)) * 2.0**-53
            places = np.flatnonzero(uniform < probability)
            with np.errstate(over="ignore"):  # what leaves float32 is infinite, and seen
                values = (content[places] / probability[places]).astype(np.float32)
        return Kept(n, torch.from_numpy(places), torch.from_numpy(values))

    def variance_bound(self, n: int) -> float:
        """1 / keep - 1."""
        return 1 / self.keep - 1 if n else 0.0
