"""Which tensors are sent exactly, which by another method, and how that changes with the steps."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace
from fnmatch import fnmatchcase
from itertools import pairwise
from typing import final

import torch

from slimgrad.comm.compressor import Compressor
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
        layers: pairs of a pattern and the compressor of the parameters that match it, or None for
            exact. The first that matches decides, before all other rules.
        warm_up: so many first steps send everything exactly.
        strength: pairs of a step and what the method's bits, share kept, threshold or rank are from
            then on; ascending. Before the first they are as given. Does not concern ``layers``.

    Raises:
        ConfigError: a value that is not allowed.

    >>> policy = Policy(exact_names=("head.*",))
    >>> policy.is_exact("conv.weight", (64, 64, 3, 3)), policy.is_exact("head.weight", (64, 64))
    (False, True)
    >>> Policy(strength=((0, 8), (500, 4))).strength_at(499)
    8
    """

    min_numel: int = 1024
    exact_vectors: bool = True
    exact_names: tuple[str, ...] = ()
    layers: tuple[tuple[str, Compressor | None], ...] = ()
    warm_up: int = 0
    strength: tuple[tuple[int, float], ...] = ()

    def __post_init__(self) -> None:
        if not isinstance(self.min_numel, int) or self.min_numel < 0:
            raise ConfigError(f"min_numel must be an integer >= 0, got {self.min_numel!r}")
        if not isinstance(self.exact_vectors, bool):
            raise ConfigError(f"exact_vectors must be True or False, got {self.exact_vectors!r}")
        # Neither a set nor an iterator, whose order or content would not be the same everywhere.
        if not isinstance(self.exact_names, tuple | list) or not all(
            isinstance(pattern, str) for pattern in self.exact_names
        ):
            raise ConfigError(
                f"exact_names must be a tuple of name patterns, got {self.exact_names!r}"
            )
        object.__setattr__(self, "exact_names", tuple(self.exact_names))
        self._check_layers()
        self._check_steps()

    def is_exact(self, name: str, shape: tuple[int, ...]) -> bool:
        """Whether the gradient of parameter ``name`` is sent exactly, at all steps."""
        layer = self._layer_of(name)
        if layer is not None:
            return layer[1] is None
        numel = torch.Size(shape).numel()
        if numel < self.min_numel or (self.exact_vectors and len(shape) < 2):
            return True
        return any(fnmatchcase(name, pattern) for pattern in self.exact_names)

    def compressor_for(
        self, name: str, shape: tuple[int, ...], step: int, default: Compressor
    ) -> Compressor | None:
        """What sends the gradient of parameter ``name`` at ``step``; None if it goes exact.

        >>> from slimgrad.comm.sparsifiers import TopK
        >>> policy = Policy(warm_up=10, strength=((10, 0.25), (20, 0.05)))
        >>> for step in (9, 10, 20):
        ...     print(policy.compressor_for("w", (64, 64), step, Compressor(TopK(keep=0.01))))
        None
        Compressor(TopK(keep=0.25), codec='fixed')
        Compressor(TopK(keep=0.05), codec='fixed')
        """
        if step < self.warm_up or self.is_exact(name, shape):
            return None
        layer = self._layer_of(name)
        if layer is not None:
            return layer[1]
        strength = self.strength_at(step)
        return default if strength is None else default.with_strength(strength)

    def strength_at(self, step: int) -> float | None:
        """The strength in force at ``step``, None if it is as given."""
        reached = [strength for first, strength in self.strength if first <= step]
        return reached[-1] if reached else None

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

    def with_own_state(self) -> Policy:
        """The same, with compressors that share no state with these."""
        layers = tuple((pattern, each and each.with_own_state()) for pattern, each in self.layers)
        return replace(self, layers=layers)

    def unmatched(self, names: Iterable[str]) -> list[str]:
        """Patterns of ``exact_names`` and ``layers`` that match none of ``names``."""
        known = list(names)
        return [
            pattern
            for pattern in (*self.exact_names, *(pattern for pattern, _ in self.layers))
            if not any(fnmatchcase(name, pattern) for name in known)
        ]

    def _layer_of(self, name: str) -> tuple[str, Compressor | None] | None:
        return next((layer for layer in self.layers if fnmatchcase(name, layer[0])), None)

    def _check_layers(self) -> None:
        for layer in self.layers:
            pair = isinstance(layer, tuple) and len(layer) == 2 and isinstance(layer[0], str)
            if not pair or not isinstance(layer[1], Compressor | None):
                raise ConfigError(
                    f"layers must be pairs of a pattern and a Compressor or None, got {layer!r}"
                )

    def _check_steps(self) -> None:
        if not _is_step(self.warm_up):
            raise ConfigError(f"warm_up must be a number of steps >= 0, got {self.warm_up!r}")
        for pair in self.strength:
            if not isinstance(pair, tuple) or len(pair) != 2 or not _is_step(pair[0]):
                raise ConfigError(f"strength must be pairs of a step and a number, got {pair!r}")
        if not all(a[0] < b[0] for a, b in pairwise(self.strength)):
            raise ConfigError(f"the steps of strength must ascend, got {self.strength!r}")


def _is_step(value: object) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and value >= 0
