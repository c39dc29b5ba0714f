"""Which tensors are sent exactly."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from fnmatch import fnmatchcase
from typing import final

import torch

from slimgrad.core.errors import ConfigError


@final
@dataclass(frozen=True)
class Policy:
    """Send small, one-dimensional and named tensors exactly, compress the others.

    Biases and normalisation parameters hold few components and react badly to noise, so that
    sending them exactly costs little.

    Args:
        min_numel: tensors with fewer components go exact.
        exact_vectors: whether tensors of fewer than two dimensions go exact.
        exact_names: patterns of parameter names that go exact; "*" and "?" as in a shell.

    Raises:
        ConfigError: a value that is not allowed.

    >>> policy = Policy(exact_names=("head.*",))
    >>> policy.is_exact("conv.weight", (64, 64, 3, 3)), policy.is_exact("head.weight", (64, 64))
    (False, True)
    """

    min_numel: int = 1024
    exact_vectors: bool = True
    exact_names: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        if not isinstance(self.min_numel, int) or self.min_numel < 0:
            raise ConfigError(f"min_numel must be an integer >= 0, got {self.min_numel!r}")
        # Neither a set nor an iterator, whose order or content would not be the same everywhere.
        if not isinstance(self.exact_names, tuple | list) or not all(
            isinstance(pattern, str) for pattern in self.exact_names
        ):
            raise ConfigError(
                f"exact_names must be a tuple of name patterns, got {self.exact_names!r}"
            )
        object.__setattr__(self, "exact_names", tuple(self.exact_names))

    def is_exact(self, name: str, shape: tuple[int, ...]) -> bool:
        """Whether the gradient of parameter ``name`` is sent exactly."""
        numel = torch.Size(shape).numel()
        if numel < self.min_numel or (self.exact_vectors and len(shape) < 2):
            return True
        return any(fnmatchcase(name, pattern) for pattern in self.exact_names)

    def exact_share(self, shapes: Iterable[tuple[str, tuple[int, ...]]]) -> float:
        """Share of the components that go exact, from 0 to 1.

        >>> Policy().exact_share([("weight", (100, 100)), ("bias", (100,))])
        0.009900990099009901
        """
        exact = total = 0
        for name, shape in shapes:
            numel = torch.Size(shape).numel()
            total += numel
            exact += numel * self.is_exact(name, shape)
        return exact / total if total else 0.0

    def unmatched(self, names: Iterable[str]) -> list[str]:
        """Patterns of ``exact_names`` that match none of ``names``."""
        known = list(names)
        return [
            pattern
            for pattern in self.exact_names
            if not any(fnmatchcase(name, pattern) for name in known)
        ]
