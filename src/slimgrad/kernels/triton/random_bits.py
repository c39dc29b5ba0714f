"""Sixteen random bits for every component, as in the reference."""

from __future__ import annotations

import triton
import triton.language as tl


@triton.jit
def random_bits(e, key):
    """Uniform integers in [0, 65535], int32, of components ``e`` (int64) of the stream ``key``."""
    z = key.to(tl.uint64) + ((e // 65536) + 1).to(tl.uint64) * 0x9E3779B97F4A7C15
    z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9
    z = (z ^ (z >> 27)) * 0x94D049BB133111EB
    z = z ^ (z >> 31)
    place = e % 65536
    counter = (place // 32) * 16 + e % 16
    x = counter.to(tl.uint32) * 0x9E3779B9 + (z & 0xFFFFFFFF).to(tl.uint32)
    x = (x ^ (x >> 16)) * 0x7FEB352D
    x = (x ^ (x >> 15)) ^ (z >> 32).to(tl.uint32)
    x = x * 0x846CA68B
    x = x ^ (x >> 16)
    upper = (place // 16) % 2 == 1
    return tl.where(upper, x >> 16, x & 0xFFFF).to(tl.int32)


def signed_key(key: int) -> int:
    """The 64 bits of ``key`` as a signed integer, which is what kernels are passed.

    >>> signed_key(2**64 - 1)
    -1
    """
    return key - (1 << 64) if key >= 1 << 63 else key
