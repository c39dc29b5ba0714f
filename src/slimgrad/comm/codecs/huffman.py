"""Huffman codec: one word a symbol."""

from __future__ import annotations

from typing import ClassVar, final

from slimgrad.comm.codecs.prefix import PrefixCodec


@final
class Huffman(PrefixCodec):
    """The best prefix code of at most 12 bits a word for the symbols of this vector.

    Bits a symbol: at least 1 and the entropy, below entropy + 1 unless a word would be longer than
    12 bits. The table takes half a byte for each of 2**bits symbols.

    >>> Huffman().payload_bounds(1000, 4)
    (152, 1528)

    References:
        Huffman (1952); the limit on lengths after Larmore, Hirschberg (1990).
    """

    name: ClassVar[str] = "huffman"
    code_id: ClassVar[int] = 7
    nanoseconds: ClassVar[float] = 3.0

    @staticmethod
    def is_paired(bits: int) -> bool:
        """False: every symbol has a word of its own."""
        return False
