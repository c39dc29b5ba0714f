"""Fixed-width codec: every symbol in exactly its ``bits`` bits."""

from __future__ import annotations

from typing import ClassVar, final

import torch

from slimgrad import kernels
from slimgrad.comm.codecs.base import Codec
from slimgrad.comm.quantizers.base import Quantized
from slimgrad.core.errors import FrameError


@final
class Fixed(Codec):
    """The packed symbols as they are: b bits a symbol, no search, no table.

    >>> Fixed().payload_bounds(1000, 4)
    (500, 500)
    """

    name: ClassVar[str] = "fixed"
    code_id: ClassVar[int] = 1
    nanoseconds: ClassVar[float] = 0.0

    def encode(self, quantized: Quantized) -> torch.Tensor:
        """The packed symbols themselves."""
        return quantized.packed

    def decode(self, payload: torch.Tensor, n: int, bits: int) -> torch.Tensor:
        """The payload itself, once its length and its unused bits are what an encoder writes.

        Raises:
            FrameError: wrong length, or a bit set behind the last symbol.
        """
        expected = kernels.packed_bytes(n, bits)
        if payload.numel() != expected:
            raise FrameError(f"{n} symbols take {expected} bytes, not {payload.numel()}", 0)
        used = (n % 512) * bits % 8
        if used and int(payload[-1]) >> used:
            raise FrameError("bits are set behind the last symbol", payload.numel() - 1)
        return payload

    def payload_bounds(self, n: int, bits: int) -> tuple[int, int]:
        """Twice the length of every payload of n symbols."""
        length = kernels.packed_bytes(n, bits)
        return length, length

    def expected_bits(self, probabilities: torch.Tensor, bits: int) -> float:
        """``bits``, whatever the probabilities."""
        return float(bits)
