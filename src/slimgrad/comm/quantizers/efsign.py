"""EF-signSGD's compressor: the sign times the mean magnitude."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar, final

from slimgrad.comm.quantizers.base import Norm
from slimgrad.comm.quantizers.sign import SignQuantizer


@final
@dataclass(frozen=True)
class EFSign(SignQuantizer):
    """Signs scaled by the mean magnitude of the bucket; to be used with error feedback.

    Q(v)_i = (||v||_1 / d) sign(v_i) in a bucket of d components, with sign(0) = 1.

    Guarantee: biased and contracting: ||Q(v) - v||^2 = (1 - ||v||_1^2 / (d ||v||_2^2)) ||v||^2 for
    every bucket, at most (1 - 1 / bucket_size) ||v||^2; 1 - 2 / pi for long normal vectors.

    Args:
        bucket_size: components that share a scale, >= 1.

    Raises:
        ConfigError: a value out of range.

    >>> EFSign(bucket_size=4).variance_bound(100)
    0.75

    References:
        Karimireddy, Rebjock, Stich, Jaggi (2019), "Error feedback fixes signSGD", section 4.
    """

    name: ClassVar[str] = "efsign"
    norm: ClassVar[Norm] = "mean"

    bucket_size: int = 8192

    def variance_bound(self, n: int) -> float:
        """1 - 1 / d with d components in the longest bucket, attained by one component."""
        return 1 - 1 / min(n, self.bucket_size) if n else 0.0
