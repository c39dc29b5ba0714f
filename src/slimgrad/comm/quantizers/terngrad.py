"""TernGrad: minus, zero or plus the largest magnitude."""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import ClassVar, final

import torch

from slimgrad import kernels
from slimgrad.comm.quantizers.base import LevelGrid, Norm, Quantized
from slimgrad.comm.quantizers.level import LevelQuantizer
from slimgrad.comm.serial import pieces
from slimgrad.core.errors import ConfigError


@final
@dataclass(frozen=True)
class TernGrad(LevelQuantizer):
    """Round to 0 or the largest magnitude of the bucket, with the sign of the component.

    Q(v)_i = max|v| sign(v_i) b_i with b_i = 1 with probability |v_i| / max|v|, else 0. With
    ``clip`` = c, v is first clipped to +-c sigma, sigma the root mean square of the whole tensor.

    Guarantee: without ``clip`` unbiased (to the resolution named in ``LevelQuantizer``), relative
    variance at most (sqrt(bucket_size) - 1) / 2. With ``clip`` biased: clipped components come out
    too small, and E||Q(v) - v||^2 <= max(1, (sqrt(bucket_size) - 1) / 2) ||v||^2. A tensor with a
    component that is not finite is not clipped, so that the component is seen.

    Args:
        bucket_size: components that share a maximum, >= 1.
        clip: c, > 0, in units of the root mean square; None for no clipping. The paper takes 2.5.

    Raises:
        ConfigError: a value out of range.

    >>> TernGrad().level_grid.levels
    (0.0, 1.0)
    >>> TernGrad(clip=2.5).unbiased, TernGrad().unbiased
    (False, True)

    References:
        Wen, Xu, Yan, Wu, Wang, Chen, Li (2017), "TernGrad", sections 3 and 4 (clipping).
    """

    name: ClassVar[str] = "terngrad"

    bucket_size: int = 512
    clip: float | None = None
    bits: int = field(default=2, init=False, repr=False)
    norm: Norm = field(default="linf", init=False, repr=False)

    def __post_init__(self) -> None:
        self._check()
        number = isinstance(self.clip, int | float) and not isinstance(self.clip, bool)
        if self.clip is not None and not (number and 0 < self.clip < math.inf):
            raise ConfigError(f"TernGrad needs a clip > 0 or None, got clip={self.clip!r}")

    @property
    def unbiased(self) -> bool:  # pyright: ignore[reportIncompatibleVariableOverride]
        """Whether the mean over the rounding is the vector itself: only without clipping."""
        return self.clip is None

    @property
    def level_grid(self) -> LevelGrid:
        """The levels magnitudes are rounded to."""
        return LevelGrid("uniform", (0.0, 1.0))

    def quantize(self, vector: torch.Tensor, key: int, *, serial: bool = False) -> Quantized:
        """Symbols and scales of a flat float32 ``vector``, with the random stream ``key``."""
        clipped = self._clipped(vector, serial) if self.clip and len(vector) else vector
        return super().quantize(clipped, key, serial=serial)

    def variance_bound(self, n: int) -> float:
        """Bound on E||Q(v) - v||^2 / ||v||^2 over all v of n components, for this configuration."""
        bound = super().variance_bound(n)
        return bound if self.clip is None or n == 0 else max(1.0, bound)

    def _clipped(self, vector: torch.Tensor, serial: bool) -> torch.Tensor:
        assert self.clip is not None
        norm = kernels.bucket_scales(vector, norm="l2", bucket_size=len(vector), serial=serial)
        limit = self.clip * float(norm) / math.sqrt(len(vector))
        if not math.isfinite(limit):
            return vector
        clipped = torch.empty_like(vector)
        parts = zip(pieces(clipped, serial=serial), pieces(vector, serial=serial), strict=True)
        for target, source in parts:
            torch.clamp(source, -limit, limit, out=target)
        return clipped
