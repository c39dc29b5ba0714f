"""Random-k: one component drawn from each of k equal stretches."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar, final

import numpy as np
import torch

from slimgrad.comm.serial import all_finite
from slimgrad.comm.sparsifiers.base import Kept, Sparsifier, check_keep, kept_count
from slimgrad.core.errors import ConfigError
from slimgrad.core.rng import uniform_words


@final
@dataclass(frozen=True)
class RandomK(Sparsifier):
    """Keep k components at random, k = round(keep n), at least one; their places cost nothing.

    The vector is cut into k stretches of floor(n / k) or ceil(n / k) components and one component
    of each is drawn, so that a receiver finds the places from the key of the stream. With
    ``scaled`` a kept component is multiplied by the length of its stretch, n / k if k divides n.

    Guarantee: scaled, unbiased (places are drawn in steps of 2**-32) with
    E||C(v) - v||^2 <= (ceil(n / k) - 1) ||v||^2; otherwise biased, with
    E||C(v) - v||^2 <= (1 - 1 / ceil(n / k)) ||v||^2. Both are equalities if k divides n.

    A vector with a component that is not finite is sent as NaN, kept or not.

    Args:
        keep: share of the components, above 0 and at most 1.
        scaled: whether to be unbiased; feedback needs False.

    Raises:
        ConfigError: a value out of range.

    >>> kept = RandomK(keep=0.25).select(torch.ones(8), key=1)
    >>> len(kept.places), kept.values
    (2, tensor([4., 4.]))
    >>> RandomK(keep=0.25).variance_bound(8), RandomK(0.25, scaled=False).contraction_bound(8)
    (3.0, 0.75)

    References:
        Wangni, Wang, Liu, Zhang (2018), "Gradient sparsification for communication-efficient
        distributed optimization"; Stich, Cordonnier, Jaggi (2018), definition 2.1.
    """

    name: ClassVar[str] = "randomk"
    fixed_count: ClassVar[bool] = True

    keep: float = 0.01
    scaled: bool = True

    def __post_init__(self) -> None:
        check_keep(self, self.keep)
        if not isinstance(self.scaled, bool):
            raise ConfigError(f"RandomK: scaled must be True or False, got {self.scaled!r}")

    @property
    def unbiased(self) -> bool:
        """Whether kept components are multiplied by the length of their stretch."""
        return self.scaled

    def select(self, vector: torch.Tensor, key: int) -> Kept:
        """One component of every stretch."""
        n = vector.numel()
        k = kept_count(n, self.keep)
        places = stratified_places(n, k, key)
        content = vector.numpy()
        values = content[places]
        if self.scaled:
            with np.errstate(over="ignore"):  # what leaves float32 is infinite, and seen
                values = values * stretch_lengths(n, k).astype(np.float32)
        if not all_finite(vector):
            values = np.full(k, np.nan, dtype=np.float32)
        return Kept(n, torch.from_numpy(places), torch.from_numpy(values), key)

    def variance_bound(self, n: int) -> float:
        """ceil(n / k) - 1, if scaled."""
        return float(_longest(n, self.keep) - 1) if self.scaled else super().variance_bound(n)

    def contraction_bound(self, n: int) -> float:
        """1 - 1 / ceil(n / k), unless scaled."""
        if self.scaled:
            return super().contraction_bound(n)
        return 1 - 1 / _longest(n, self.keep)


def stratified_places(n: int, k: int, key: int) -> np.ndarray:
    """The place drawn from each of k stretches of n components, int64 (k,), ascending.

    Stretch j begins at floor(j n / k). With w the upper 32 bits of word j of the stream ``key``
    and L the length of the stretch, its place is the beginning plus floor(w L / 2**32).

    >>> bool((stratified_places(1000, 10, key=3) // 100 == np.arange(10)).all())
    True
    """
    starts = _starts(n, k)
    lengths = np.diff(starts)
    high = uniform_words(key, k) >> np.uint64(32)
    return (starts[:-1] + (high * lengths >> np.uint64(32))).astype(np.int64)


def stretch_lengths(n: int, k: int) -> np.ndarray:
    """Components of each of the k stretches of n, uint64 (k,).

    >>> stretch_lengths(10, 3).tolist()
    [3, 3, 4]
    """
    return np.diff(_starts(n, k))


def _starts(n: int, k: int) -> np.ndarray:
    return np.arange(k + 1, dtype=np.uint64) * np.uint64(n) // np.uint64(max(k, 1))


def _longest(n: int, keep: float) -> int:
    return -(-n // kept_count(n, keep)) if n else 1
