"""What a codec is: lossless symbols to bytes and back."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import ClassVar

import torch

from slimgrad.comm.quantizers.base import Quantized


class Codec(ABC):
    """Writes the packed symbols of a quantized vector as bytes, losslessly.

    Attributes:
        name: registry name, equal to the file name.
        code_id: number of the codec on the wire, never reused.
        nanoseconds: what encoding and decoding a symbol took together on one machine (one
            thread, AVX-512); a hint for the choice of a codec, no promise.
    """

    name: ClassVar[str]
    code_id: ClassVar[int]
    nanoseconds: ClassVar[float]

    @abstractmethod
    def encode(self, quantized: Quantized) -> torch.Tensor:
        """The symbols as a uint8 payload; scales and levels travel beside it."""

    @abstractmethod
    def decode(self, payload: torch.Tensor, n: int, bits: int) -> torch.Tensor:
        """The packed symbols again; FrameError when the payload cannot hold n symbols."""

    @abstractmethod
    def payload_bounds(self, n: int, bits: int) -> tuple[int, int]:
        """The least and the most bytes a payload of n symbols can have; equal for fixed lengths.

        The least keeps a short frame from claiming a huge vector; the most is what a receiver
        must be ready to accept.
        """

    @abstractmethod
    def expected_bits(self, probabilities: torch.Tensor, bits: int) -> float:
        """Expected bits a symbol for probabilities (2**bits,) of independent symbols.

        Without what ``overhead_bytes`` counts.
        """

    def expected_bits_of_pairs(self, probabilities: torch.Tensor, bits: int) -> float:
        """The same for probabilities (4**bits,) of neighbours 2i and 2i + 1.

        The pair (a, b) stands at a + 2**bits b. A codec that sees one symbol at a time sees their
        mean distribution.
        """
        pairs = probabilities.view(1 << bits, 1 << bits)
        return self.expected_bits((pairs.sum(0) + pairs.sum(1)) / 2, bits)

    def overhead_bytes(self, n: int, bits: int) -> int:
        """Bytes of a payload of n symbols that hold no symbol: tables, sizes of parts."""
        return 0

    def for_vector(self, quantized: Quantized) -> Codec:
        """The codec that writes this vector and that the frame names: this one."""
        return self
