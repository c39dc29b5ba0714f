"""Raw codec: every symbol in a byte of its own."""

from __future__ import annotations

from typing import ClassVar, final

import torch

from slimgrad import kernels
from slimgrad.comm.codecs.base import Codec
from slimgrad.comm.quantizers.base import Quantized
from slimgrad.core.errors import FrameError


@final
class Raw(Codec):
    """One byte a symbol: the plainest payload, to compare and to debug other codecs with.

    >>> Raw().payload_bounds(1000, 4)
    (1000, 1000)
    """

    name: ClassVar[str] = "raw"
    code_id: ClassVar[int] = 0
    nanoseconds: ClassVar[float] = 0.2

    def encode(self, quantized: Quantized) -> torch.Tensor:
        """The symbols in order, a byte each."""
        return kernels.unpack_symbols(quantized.packed, quantized.symbols, quantized.bits)

    def decode(self, payload: torch.Tensor, n: int, bits: int) -> torch.Tensor:
        """The packed symbols again.

        Raises:
            FrameError: wrong length, or a byte that is not a symbol of ``bits`` bits.
        """
        if payload.numel() != n:
            raise FrameError(f"{n} symbols take {n} bytes, not {payload.numel()}", 0)
        too_wide = payload.numpy() >> bits
        if too_wide.any():
            position = int(too_wide.argmax())
            raise FrameError(f"symbol {int(payload[position])} does not fit {bits} bits", position)
        return kernels.pack_symbols(payload, bits)

    def payload_bounds(self, n: int, bits: int) -> tuple[int, int]:
        """Twice the length of every payload of n symbols."""
        length = n
        return length, length

    def expected_bits(self, probabilities: torch.Tensor, bits: int) -> float:
        """8, whatever the probabilities."""
        return 8.0
