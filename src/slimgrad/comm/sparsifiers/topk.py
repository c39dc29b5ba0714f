"""Top-k: the largest magnitudes."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar, final

import torch

from slimgrad import kernels
from slimgrad.comm.sparsifiers.base import Kept, Sparsifier, check_keep, kept_count


@final
@dataclass(frozen=True)
class TopK(Sparsifier):
    """Keep the k components of largest magnitude as they are, k = round(keep n), at least one.

    Of equal magnitudes those with the lowest places are kept.

    Guarantee: biased; ||C(v) - v||^2 <= (1 - k / n) ||v||^2, with equality for equal magnitudes.
    Meant to be used with feedback.

    Args:
        keep: share of the components, above 0 and at most 1.

    Raises:
        ConfigError: a share out of range.

    >>> TopK(keep=0.5).select(torch.tensor([1.0, -4.0, 2.0, 0.0]), key=0).places
    tensor([1, 2])
    >>> TopK(keep=0.01).contraction_bound(1000)
    0.99

    References:
        Aji, Heafield (2017), "Sparse communication for distributed gradient descent", section 3.
        Stich, Cordonnier, Jaggi (2018), "Sparsified SGD with memory", definition 2.1.
    """

    name: ClassVar[str] = "topk"

    keep: float = 0.01

    def __post_init__(self) -> None:
        check_keep(self, self.keep)

    @property
    def unbiased(self) -> bool:
        """False: what is small is lost."""
        return False

    def select(self, vector: torch.Tensor, key: int) -> Kept:
        """The largest magnitudes; ``key`` is not used."""
        n = vector.numel()
        places = kernels.topk_places(vector, kept_count(n, self.keep))
        return Kept(n, places, torch.from_numpy(vector.numpy()[places.numpy()]))

    def contraction_bound(self, n: int) -> float:
        """1 - k / n."""
        return 1 - kept_count(n, self.keep) / n if n else 0.0
