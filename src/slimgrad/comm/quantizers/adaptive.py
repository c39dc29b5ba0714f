"""Levels that follow the gradients: measured on a schedule, for each tensor, on all ranks alike."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass, field

import numpy as np
import torch

from slimgrad import kernels
from slimgrad.comm.quantizers.base import LevelGrid, Norm, Quantized
from slimgrad.comm.quantizers.level import LevelQuantizer, float32_levels, magnitudes
from slimgrad.comm.quantizers.levels import Levels
from slimgrad.core.errors import CheckpointError, ConfigError
from slimgrad.kernels.checks import is_integer
from slimgrad.theory import MagnitudeDensity, exponential_levels

BINS = 1024
# Bins grow with their place, so that they are narrow where most magnitudes lie.
_EDGES = (np.arange(BINS + 1) / BINS) ** 2
_SAMPLE = 1 << 20


@dataclass(frozen=True)
class AdaptiveQuantizer(LevelQuantizer):
    """Stochastic rounding to levels that are chosen anew on a schedule, for each tensor.

    At a refresh each rank counts the magnitudes r = |v_i| / norm(v) of its tensor, weighted by the
    squared norms of their buckets; the counts of all ranks are added in rank order, and the levels
    are those that suit the sum. Until its first refresh a tensor has powers of 1/2.

    Guarantee: unbiased at every step, because levels never depend on the random stream; all ranks
    have the same levels, which travel with every frame all the same. The expected variance of the
    refreshed levels for the counted distribution is never above that of the levels they replace
    by more than a bin of the histogram explains.

    Args:
        bits: width of a symbol with its sign, 3 to 8.
        bucket_size: components that share a norm, >= 1.
        norm: "l2" or "linf", of the bucket.
        refresh_at: steps at which levels are chosen anew, each >= 0.
        refresh_every: and at every multiple of this, >= 1.

    Raises:
        ConfigError: a value out of range.
    """

    bits: int = 4
    bucket_size: int = 512
    norm: Norm = "l2"
    refresh_at: tuple[int, ...] = (0, 100, 2000)
    refresh_every: int = 10_000
    _tables: dict[str, Levels] = field(
        default_factory=dict, init=False, repr=False, compare=False, hash=False
    )

    def __post_init__(self) -> None:
        self._check()
        name = type(self).__name__
        if self.bits < 3:
            raise ConfigError(
                f"{name} needs bits from 3 to 8, since 2 leave no level to choose, "
                f"got bits={self.bits!r}"
            )
        listed = isinstance(self.refresh_at, tuple | list)
        if not listed or not all(is_integer(step) and step >= 0 for step in self.refresh_at):
            raise ConfigError(
                f"{name} needs refresh_at to be a tuple of steps >= 0, "
                f"got refresh_at={self.refresh_at!r}"
            )
        object.__setattr__(self, "refresh_at", tuple(self.refresh_at))
        if not is_integer(self.refresh_every) or self.refresh_every < 1:
            raise ConfigError(
                f"{name} needs refresh_every >= 1, got refresh_every={self.refresh_every!r}"
            )

    @abstractmethod
    def best_levels(self, density: MagnitudeDensity) -> tuple[float, ...]:
        """The levels for magnitudes of this distribution; ConfigError where there are none."""

    @property
    def level_grid(self) -> LevelGrid:
        """The levels of a tensor before its first refresh."""
        return LevelGrid("table", exponential_levels(magnitudes(self.bits) - 1))

    def for_tensor(self, name: str) -> Levels:
        """The quantizer with the levels of tensor ``name``."""
        start = Levels(self.level_grid.levels, self.bucket_size, self.norm)
        return self._tables.get(name, start)

    def quantize(self, vector: torch.Tensor, key: int, *, serial: bool = False) -> Quantized:
        """Symbols and scales of a vector without a name: levels are those of the start."""
        return self.for_tensor("").quantize(vector, key, serial=serial)

    def variance_bound(self, n: int) -> float:
        """The largest bound of the levels now in use, over all tensors and for a new one."""
        tables = [self.for_tensor(""), *self._tables.values()]
        return max(table.variance_bound(n) for table in tables)

    def is_due(self, step: int) -> bool:
        """Whether levels are chosen anew before the gradients of ``step`` are sent."""
        return step in self.refresh_at or (step > 0 and step % self.refresh_every == 0)

    def counts(self, vector: torch.Tensor) -> np.ndarray:
        """Weighted counts of the magnitudes of a flat float32 ``vector``: float64 (1024,).

        Long vectors are sampled at evenly spaced buckets. Buckets that are zero or not finite
        count nothing.
        """
        size = min(self.bucket_size, max(len(vector), 1))
        whole = len(vector) // size
        norms = kernels.bucket_scales(vector, norm=self.norm, bucket_size=size, serial=True).numpy()
        components = vector.detach().numpy()
        step = max(1, -(-len(vector) // _SAMPLE))
        rows = components[: whole * size].reshape(whole, size)[::step]
        total = _weighted_counts(rows, norms[:whole:step])
        if len(norms) > whole and whole % step == 0:
            total += _weighted_counts(components[whole * size :][None], norms[whole:])
        return total

    def refresh(self, name: str, counts: np.ndarray) -> None:
        """Choose the levels of tensor ``name`` for these counts.

        Counts that say nothing (none, or not finite), or whose levels float32 cannot hold, keep the
        old levels.
        """
        if not counts.sum() > 0 or not np.isfinite(counts).all():
            return
        try:
            levels = self.best_levels(MagnitudeDensity.from_histogram(_EDGES, counts))
            float32_levels(levels, type(self).__name__)
        except ConfigError:
            return
        self._tables[name] = Levels(levels, self.bucket_size, self.norm)

    def state_dict(self) -> dict[str, torch.Tensor]:
        """The levels of every refreshed tensor by name, float32."""
        return {name: torch.tensor(table.levels) for name, table in self._tables.items()}

    def load_state_dict(self, state: Mapping[str, torch.Tensor]) -> None:
        """Continue with the levels that ``state_dict`` gave.

        Raises:
            CheckpointError: something that is no levels of this width.
        """
        tables = {}
        for name, levels in state.items():
            try:
                table = Levels(tuple(levels.tolist()), self.bucket_size, self.norm)
            except (AttributeError, ConfigError) as error:
                raise CheckpointError(f"the levels of {name!r} cannot be used: {error}") from None
            if table.bits != self.bits:
                raise CheckpointError(
                    f"the levels of {name!r} take {table.bits} bits, not {self.bits}"
                )
            tables[name] = table
        self._tables.clear()
        self._tables.update(tables)


def _weighted_counts(rows: np.ndarray, norms: np.ndarray) -> np.ndarray:
    """Magnitudes over the norm of their row, counted with its square as weight."""
    usable = (norms > 0) & np.isfinite(norms)
    scale = norms[usable].astype(np.float64)
    place = np.sqrt(np.minimum(np.abs(rows[usable]) / scale[:, None], 1.0)) * BINS
    bins = np.minimum(place.astype(np.int64), BINS - 1).ravel()
    return np.bincount(bins, np.repeat(scale**2, rows.shape[1]), minlength=BINS)
