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
    """

    name: ClassVar[str]
    code_id: ClassVar[int]

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
        """Expected bits a symbol for symbol probabilities of shape (2**bits,), tables included."""
