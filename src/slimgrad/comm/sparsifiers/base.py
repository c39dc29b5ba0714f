"""What a sparsifier is, and what it keeps."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import ClassVar

import torch

from slimgrad.core.errors import ConfigError


@dataclass(frozen=True)
class Kept:
    """Some components of a vector of n; the others count as zero.

    Attributes:
        n: number of components of the whole vector.
        places: int64 (k,), ascending, each below n.
        values: float32 (k,), what stands at these places.
        key: stream from which a receiver finds the places by itself (``stratified_places``), or
            None when they have to be sent.
    """

    n: int
    places: torch.Tensor
    values: torch.Tensor
    key: int | None = None


class Sparsifier(ABC):
    """Keeps some components of a vector.

    Attributes:
        name: registry name, equal to the file name.
        strength: name of the setting that says how much is kept.
        fixed_count: whether the number of kept components, and of the bytes that say which,
            follows from n alone.
    """

    name: ClassVar[str]
    strength: ClassVar[str] = "keep"
    fixed_count: ClassVar[bool] = False

    @property
    @abstractmethod
    def unbiased(self) -> bool:
        """Whether the mean over the random stream is the vector itself."""

    @abstractmethod
    def select(self, vector: torch.Tensor, key: int) -> Kept:
        """What is kept of a flat float32 ``vector``, with the random stream ``key``.

        Stays on the calling thread. If a component is not finite, so is one that is kept.
        """

    def variance_bound(self, n: int) -> float:
        """Bound on E||C(v) - v||^2 / ||v||^2 over all v of n components, if C is unbiased."""
        raise ConfigError(f"{self!r} is biased; ask for its contraction_bound")

    def contraction_bound(self, n: int) -> float:
        """Bound on E||C(v) - v||^2 / ||v||^2 over all v of n components, if C is biased."""
        raise ConfigError(f"{self!r} is unbiased; ask for its variance_bound")


def kept_count(n: int, keep: float) -> int:
    """The share ``keep`` of n components: rounded, at least one, at most all.

    >>> kept_count(1000, 0.01), kept_count(3, 0.01), kept_count(0, 0.5)
    (10, 1, 0)
    """
    return min(n, max(1, round(keep * n)))


def check_keep(owner: object, keep: float) -> None:
    """ConfigError unless ``keep`` is a share above 0 and at most 1."""
    if isinstance(keep, bool) or not isinstance(keep, int | float) or not 0 < keep <= 1:
        raise ConfigError(
            f"{type(owner).__name__} keeps a share above 0 and at most 1, got keep={keep!r}"
        )
