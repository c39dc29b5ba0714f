"""Dithered: integers of a step, with a dither that the receiver takes off again."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar, final

import torch

from slimgrad import kernels
from slimgrad.comm.quantizers.base import LevelGrid, Quantized, Quantizer
from slimgrad.comm.quantizers.level import check_symbols, magnitudes
from slimgrad.core.errors import ConfigError
from slimgrad.theory import dither_variance_bound

LARGEST_STEP_RMS = 2.0**64
# The step may exceed what was asked by one part in 2**20, and u is drawn in steps of 2**-16.
_ROUNDING = 1.0 + 2.0**-18


@final
@dataclass(frozen=True)
class Dithered(Quantizer):
    """Round to integers of a step, shifted at random by a part of it that the receiver takes off.

    Q(v)_i = step (round(v_i / step + u_i) - u_i) with u_i uniform in (-1/2, 1/2), known to both
    sides by the key of the frame, and step = max(step_rms * rms, max|v| / m) over each bucket,
    m = 2**(bits - 1) - 1.

    Guarantee: unbiased up to 2**-17 of a step, plus float32 rounding. The error is uniform in
    (-step / 2, step / 2) whatever the vector, so the relative variance *equals* step_rms^2 / 12
    wherever the largest component is at most m step_rms times the root mean square of its bucket;
    in other buckets it is n max|v|^2 / (12 m^2 ||v||^2), never more than n / (12 m^2).

    Args:
        step_rms: least step over the root mean square of the bucket, above 0 and at most 2**64.
        bits: width of a symbol with its sign, 2 to 8.
        bucket_size: components that share a step, >= 1.

    Raises:
        ConfigError: a value out of range.

    >>> Dithered().step_rms ** 2 / 12 <= Dithered(bucket_size=49).variance_bound(49) <= 0.0834
    True
    >>> round(Dithered().variance_bound(512), 2)
    0.87

    References:
        Schuchman (1964), "Dither signals and their effect on quantization noise".
        Roberts (1962), "Picture coding using pseudo-random noise", the subtraction.
    """

    name: ClassVar[str] = "dithered"
    unbiased: ClassVar[bool] = True

    step_rms: float = 1.0
    bits: int = 4
    bucket_size: int = 512

    def __post_init__(self) -> None:
        if not _is_number(self.step_rms) or not 0 < self.step_rms <= LARGEST_STEP_RMS:
            raise ConfigError(
                "Dithered needs a step_rms above 0 and at most 2**64, "
                f"got step_rms={self.step_rms!r}"
            )
        check_symbols("Dithered", self.bits, self.bucket_size)

    @property
    def level_grid(self) -> LevelGrid:
        """The integers magnitudes stand for."""
        return LevelGrid("integer", tuple(float(j) for j in range(magnitudes(self.bits) + 1)))

    def quantize(self, vector: torch.Tensor, key: int, *, serial: bool = False) -> Quantized:
        """Symbols and steps of a flat float32 ``vector``, with the dither of stream ``key``."""
        steps, packed = kernels.dither(
            vector,
            step_rms=self.step_rms,
            bits=self.bits,
            bucket_size=self.bucket_size,
            key=key,
            serial=serial,
        )
        return Quantized(
            n=vector.numel(),
            bits=self.bits,
            bucket_size=self.bucket_size,
            grid=self.level_grid,
            norm="step",
            scales=steps,
            packed=packed,
            key=key,
            transform="dither",
        )

    def variance_bound(self, n: int) -> float:
        """Bound on E||Q(v) - v||^2 / ||v||^2 over all v of n components, for this configuration.

        ``slimgrad.theory.dither_variance_bound`` for the longest bucket, and 2**-18 of it for what
        the resolution of the dither and the rounding of the step can add. Holds up to float32
        rounding, for buckets whose step is a normal float32.
        """
        bucket = min(n, self.bucket_size)
        return dither_variance_bound(self.step_rms, magnitudes(self.bits), bucket) * _ROUNDING


def _is_number(value: object) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)
