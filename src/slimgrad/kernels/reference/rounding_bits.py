"""Sixteen random bits for every component of a vector, from a key and the component's place.

Counter-based, so any part of a vector can be rounded by any thread in any order. Each run of 65536
components has two 32-bit keys from the splitmix64 finaliser (Steele, Lea and Flood, 2014); inside
it a keyed 32-bit mixer turns a counter into the bits of two components that lie 16 apart.
"""

from __future__ import annotations

import torch

CHUNK = 65536
LANES = 16
_WORD = 0xFFFFFFFF


def chunk_keys(key: int, chunk: int) -> tuple[int, int]:
    """The two 32-bit keys of components 65536 chunk .. 65536 chunk + 65535.

    >>> chunk_keys(1, 0) == chunk_keys(1, 1)
    False
    """
    wide = 0xFFFFFFFFFFFFFFFF
    z = (key + (chunk + 1) * 0x9E3779B97F4A7C15) & wide
    z = ((z ^ (z >> 30)) * 0xBF58476D1CE4E5B9) & wide
    z = ((z ^ (z >> 27)) * 0x94D049BB133111EB) & wide
    z ^= z >> 31
    return z & _WORD, z >> 32


def random_bits(n: int, key: int) -> torch.Tensor:
    """Uniform integers in [0, 65535], int64 of shape (n,), for components 0 .. n-1.

    >>> bool((random_bits(40, key=3)[:20] == random_bits(20, key=3)).all())
    True
    """
    chunks = -(-n // CHUNK)
    counters = torch.arange(-(-min(n, CHUNK) // (2 * LANES)) * LANES)
    x = random_words(chunks, counters, key).view(chunks, len(counters) // LANES, LANES)
    halves = torch.stack([x & 0xFFFF, x >> 16], dim=2)
    return halves.flatten()[:n]


def random_words(chunks: int, counters: torch.Tensor, key: int) -> torch.Tensor:
    """Uniform 32-bit integers, int64 (chunks, len(counters)): one for every chunk and counter.

    >>> random_words(3, torch.arange(2), key=5).shape
    torch.Size([3, 2])
    """
    keys = torch.tensor([chunk_keys(key, c) for c in range(chunks)], dtype=torch.int64)
    first, second = keys.view(chunks, 2, 1).unbind(1)
    x = _times(counters, 0x9E3779B9) + first & _WORD
    x = x ^ (x >> 16)
    x = _times(x, 0x7FEB352D)
    x = x ^ (x >> 15)
    x = x ^ second
    x = _times(x, 0x846CA68B)
    return x ^ (x >> 16)


def _times(x: torch.Tensor, factor: int) -> torch.Tensor:
    """Product modulo 2**32; int64 wraps around, which leaves the low 32 bits right."""
    return (x * factor) & _WORD
