"""Auto codec: for every vector the codec that is expected to be best."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import ClassVar, final

import torch

from slimgrad import kernels
from slimgrad.comm.codecs.base import Codec
from slimgrad.comm.quantizers.base import Quantized
from slimgrad.core.errors import ConfigError

# Blocks of 512 symbols that are counted at least, of vectors that have as many.
COUNTED_BLOCKS = 1024
_MOST_PAIR_BITS = 4


@final
@dataclass(frozen=True)
class Auto(Codec):
    """Chooses for each vector, by the frequencies of its symbols; the frame names the choice.

    Without a link the codec of the fewest expected bytes wins, tables counted. With one it is that
    of the least expected time,

        8 bytes / link_bits_per_second + n nanoseconds 1e-9,

    where ``nanoseconds`` is what the codec was measured to take for a symbol on one machine. So the
    choice depends on the vector and the settings alone, and is the same on every machine.

    Args:
        link_bits_per_second: speed of the link, above 0; None where only size matters.

    Raises:
        ConfigError: a speed that is not above 0 and finite.

    >>> Auto(link_bits_per_second=1e9).name
    'auto'
    """

    name: ClassVar[str] = "auto"
    code_id: ClassVar[int] = -1  # no frame names it
    nanoseconds: ClassVar[float] = 0.0

    link_bits_per_second: float | None = None

    def __post_init__(self) -> None:
        link = self.link_bits_per_second
        right_kind = isinstance(link, int | float) and not isinstance(link, bool)
        if link is not None and not (right_kind and 0 < link < math.inf):
            raise ConfigError(f"Auto needs link_bits_per_second above 0 or None, got {link!r}")

    def for_vector(self, quantized: Quantized) -> Codec:
        """The codec of the least expected cost for this vector."""
        if quantized.symbols == 0:
            return _candidates()[0]
        probabilities, of_pairs = _frequencies(quantized)
        n, bits = quantized.symbols, quantized.bits

        def cost(codec: Codec) -> float:
            expected = codec.expected_bits_of_pairs if of_pairs else codec.expected_bits
            size = 8 * codec.overhead_bytes(n, bits) + n * expected(probabilities, bits)
            if self.link_bits_per_second is None:
                return size
            return size / self.link_bits_per_second + n * codec.nanoseconds * 1e-9

        return min(_candidates(), key=cost)

    def encode(self, quantized: Quantized) -> torch.Tensor:
        """The payload of the chosen codec."""
        return self.for_vector(quantized).encode(quantized)

    def decode(self, payload: torch.Tensor, n: int, bits: int) -> torch.Tensor:
        """Always an error: the frame names the codec that was chosen.

        Raises:
            ConfigError: always.
        """
        raise ConfigError("'auto' decodes nothing; decode with the codec that the frame names")

    def payload_bounds(self, n: int, bits: int) -> tuple[int, int]:
        """The least and the most over all codecs."""
        bounds = [codec.payload_bounds(n, bits) for codec in _candidates()]
        return min(least for least, _ in bounds), max(most for _, most in bounds)

    def expected_bits(self, probabilities: torch.Tensor, bits: int) -> float:
        """The least over all codecs."""
        return min(codec.expected_bits(probabilities, bits) for codec in _candidates())


def _frequencies(quantized: Quantized) -> tuple[torch.Tensor, bool]:
    """Of pairs of neighbours where symbols are narrow, else of symbols; and which of both."""
    every = max(1, -(-quantized.symbols // 512) // COUNTED_BLOCKS)
    pairs = quantized.bits <= _MOST_PAIR_BITS
    counts = kernels.huffman_count(
        quantized.packed, quantized.symbols, quantized.bits, pairs=pairs, every=every
    )
    return counts.double() / counts.sum(), pairs


def _candidates() -> list[Codec]:
    """All that a frame can name, the plainest first: it wins a tie."""
    from slimgrad.comm.codecs import CODECS

    found = [CODECS.get(name)() for name in CODECS if name not in (Auto.name, "raw")]
    return sorted(found, key=lambda codec: codec.code_id)
