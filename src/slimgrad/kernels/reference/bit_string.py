"""Bit strings of code words as text: the highest bit of a byte first."""

from __future__ import annotations

import torch

from slimgrad.core.errors import FrameError


def payload_of(digits: str) -> torch.Tensor:
    """The digits as uint8, the last byte filled up with zeros.

    >>> payload_of("1010000011").tolist()
    [160, 192]
    """
    whole = digits + "0" * (-len(digits) % 8)
    octets = int(whole, 2).to_bytes(len(whole) // 8, "big") if whole else b""
    return (
        torch.frombuffer(bytearray(octets), dtype=torch.uint8)
        if octets
        else torch.empty(0, dtype=torch.uint8)
    )


class DigitReader:
    """Reads a payload digit by digit."""

    def __init__(self, payload: torch.Tensor) -> None:
        self._digits = "".join(f"{octet:08b}" for octet in payload.tolist())
        self._at = 0

    @property
    def byte(self) -> int:
        """The byte that holds the next digit."""
        return self._at // 8

    def take(self, count: int) -> int:
        """The number that the next ``count`` digits are; FrameError behind the end."""
        end = self._at + count
        if end > len(self._digits):
            raise FrameError("the payload ends within a code word", len(self._digits) // 8)
        digits = self._digits[self._at : end]
        self._at = end
        return int(digits or "0", 2)

    def require_end(self) -> None:
        """FrameError unless fewer than 8 digits are left, all 0."""
        rest = self._digits[self._at :]
        if len(rest) >= 8 or "1" in rest:
            raise FrameError("something follows the last code word", self.byte)
