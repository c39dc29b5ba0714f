"""Several packed vectors decoded and added up in one pass."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import torch

from slimgrad.core.errors import ConfigError
from slimgrad.core.registry import unknown_name_message
from slimgrad.kernels.backend import native_module
from slimgrad.kernels.checks import (
    check_bits,
    check_bucket_size,
    check_key,
    check_size,
    check_sum_target,
    note_change,
)
from slimgrad.kernels.dither import undither, undither_add_
from slimgrad.kernels.native import summing as native
from slimgrad.kernels.packing import packed_bytes
from slimgrad.kernels.reference.packing import BLOCK
from slimgrad.kernels.rotation import rotate_dequantize, rotate_dequantize_add_
from slimgrad.kernels.rounding import dequantize, dequantize_add_

TRANSFORMS = ("none", "dither", "rotation")


@dataclass(frozen=True)
class PackedVector:
    """Symbols and scales of one vector, and how to read them.

    Attributes:
        transform: "none", "dither" or "rotation", as in docs/wire-format.md.
        packed: uint8, the symbols; in whole blocks of 512 under a rotation.
        scales: float32, one a bucket.
        levels: magnitudes of the symbols, ascending; unused under a dither.
        bits: width of a symbol, sign included.
        bucket_size: components that share a scale; 512 under a rotation.
        key: of the dither or the rotation.
    """

    transform: str
    packed: torch.Tensor
    scales: torch.Tensor
    levels: tuple[float, ...]
    bits: int
    bucket_size: int
    key: int = 0

    def values(self, n: int, *, serial: bool = False) -> torch.Tensor:
        """The n components, by the operation for vectors of this kind; float32 (n,)."""
        settings = self._settings(serial)
        if self.transform == "dither":
            return undither(self.packed, self.scales, n=n, **settings)
        if self.transform == "rotation":
            return rotate_dequantize(self.packed, self.scales, n=n, **settings)
        return dequantize(self.packed, self.scales, n=n, **settings)

    def add_to_(
        self, out: torch.Tensor, alpha: float = 1.0, *, serial: bool = False
    ) -> torch.Tensor:
        """Adds alpha times the vector to float32 ``out``, by the operation for this kind."""
        settings = self._settings(serial)
        if self.transform == "dither":
            return undither_add_(out, self.packed, self.scales, alpha=alpha, **settings)
        if self.transform == "rotation":
            return rotate_dequantize_add_(out, self.packed, self.scales, alpha=alpha, **settings)
        return dequantize_add_(out, self.packed, self.scales, alpha=alpha, **settings)

    def _settings(self, serial: bool) -> dict[str, Any]:
        """What the operations of this kind take by name."""
        settings: dict[str, Any] = {"bits": self.bits, "serial": serial}
        if self.transform != "none":
            settings["key"] = self.key
        if self.transform != "dither":
            settings["levels"] = self.levels
        if self.transform != "rotation":
            settings["bucket_size"] = self.bucket_size
        return settings


def sum_packed_(
    out: torch.Tensor, vectors: Sequence[PackedVector], *, serial: bool = False
) -> torch.Tensor:
    """Sets ``out`` to ((0 + v_0) + v_1) + ... over all ``vectors``, in one pass over memory.

    Equal to the last bit to zeroing ``out`` and adding one vector after the other.

    Args:
        out: (n,) float32, contiguous, on the CPU; what was there is lost.
        vectors: of n components each, any number and kinds of them.
        serial: use the calling thread only.

    Returns:
        ``out``.

    Raises:
        ConfigError: sizes that do not agree, or an argument outside its range.

    >>> from slimgrad import kernels
    >>> packed = kernels.pack_symbols(torch.tensor([0, 1, 3], dtype=torch.uint8), bits=2)
    >>> one = PackedVector("none", packed, torch.tensor([5.0]), (0.0, 1.0), bits=2, bucket_size=4)
    >>> sum_packed_(torch.ones(3), [one, one])
    tensor([  0.,  10., -10.])
    """
    check_sum_target(out, 1.0)
    for vector in vectors:
        _check(vector, len(out))
    module = native_module()
    if module is None:
        out.zero_()
        for vector in vectors:
            vector.add_to_(out, serial=serial)
        return out
    native.sum_packed_(module, out, [_contiguous(vector) for vector in vectors], serial=serial)
    note_change(out)
    return out


def _check(vector: PackedVector, n: int) -> None:
    if vector.transform not in TRANSFORMS:
        raise ConfigError(unknown_name_message("transform", vector.transform, TRANSFORMS))
    check_bits(vector.bits)
    check_bucket_size(vector.bucket_size)
    check_key(vector.key)
    symbols = n
    if vector.transform == "rotation":
        symbols = -(-n // BLOCK) * BLOCK
        if vector.bits > 4 or vector.bucket_size != BLOCK:
            raise ConfigError(
                f"rotated vectors have at most 4 bits and buckets of {BLOCK}, "
                f"got {vector.bits} and {vector.bucket_size}"
            )
    if vector.transform != "dither" and not 1 <= len(vector.levels) <= 1 << (vector.bits - 1):
        raise ConfigError(f"{len(vector.levels)} levels do not fit in {vector.bits} bits")
    check_size("packed", vector.packed, torch.uint8, packed_bytes(symbols, vector.bits))
    check_size("scales", vector.scales, torch.float32, -(-n // vector.bucket_size))


def _contiguous(vector: PackedVector) -> PackedVector:
    packed, scales = vector.packed.contiguous(), vector.scales.detach().contiguous()
    return replace(vector, packed=packed, scales=scales)
