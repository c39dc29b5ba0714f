"""Random streams addressed by what they are for, never by what was drawn before.

A stream is named by (seed, step, name, rank). Recomputing a step, resuming a run or splitting
tensors over buckets in another way therefore cannot change a draw, and two ranks never share one.
"""

from __future__ import annotations

import hashlib
import struct

import numpy as np
import torch

from slimgrad.core.errors import ConfigError

_PACK = struct.Struct("<qqq")


def stream_key(seed: int, step: int, name: str, rank: int = 0) -> int:
    """64-bit key of the stream (seed, step, name, rank), uniform over [0, 2**64).

    Args:
        seed: experiment seed, any integer of 63 bits.
        step: optimizer step, >= 0.
        name: parameter or layer name.
        rank: rank that draws, >= 0; ranks that must agree pass the same value.

    Raises:
        ConfigError: a number out of range, or none.

    >>> stream_key(0, 0, "conv1.weight") == stream_key(0, 0, "conv1.weight")
    True
    >>> stream_key(0, 0, "conv1.weight", rank=1) == stream_key(0, 0, "conv1.weight", rank=0)
    False
    """
    try:
        head = _PACK.pack(seed, step, rank)
    except struct.error:
        head = b""
    if not head or step < 0 or rank < 0:
        raise ConfigError(
            "seed, step and rank must be integers of at most 63 bits, step and rank >= 0, "
            f"got {seed!r}, {step!r}, {rank!r}"
        )
    digest = hashlib.blake2b(head + name.encode(), digest_size=8).digest()
    return int.from_bytes(digest, "little")


def numpy_generator(key: int) -> np.random.Generator:
    """A Philox (Salmon et al., 2011) generator for ``key``; counter-based, so random access.

    >>> bool((numpy_generator(7).random(3) == numpy_generator(7).random(3)).all())
    True
    """
    return np.random.Generator(np.random.Philox(key=key & 0xFFFFFFFFFFFFFFFF))


def normal(key: int, shape: tuple[int, ...], dtype: torch.dtype = torch.float32) -> torch.Tensor:
    """Independent N(0, 1) draws of the stream ``key`` as a CPU tensor of ``shape`` and ``dtype``.

    >>> normal(3, (2, 2)).shape
    torch.Size([2, 2])
    """
    draws = numpy_generator(key).standard_normal(shape, dtype=np.float32)
    return torch.from_numpy(np.asarray(draws)).to(dtype)


def permutation(key: int, n: int) -> torch.Tensor:
    """A random permutation of 0 .. n-1 (int64) of the stream ``key``.

    >>> sorted(permutation(1, 4).tolist())
    [0, 1, 2, 3]
    """
    return torch.from_numpy(numpy_generator(key).permutation(n))


def uniform_words(key: int, n: int) -> np.ndarray:
    """Words 0 .. n-1 of the stream ``key``, uint64 (n,): word j is splitmix64 of key + (j + 1) g.

    g = 0x9E3779B97F4A7C15, and splitmix64 the finaliser of Steele, Lea and Flood (2014), "Fast
    splittable pseudorandom number generators". Simple enough for a wire format to state it.

    >>> hex(int(uniform_words(0, 1)[0]))
    '0xe220a8397b1dcdaf'
    """
    counters = np.arange(1, n + 1, dtype=np.uint64)
    z = counters * np.uint64(0x9E3779B97F4A7C15) + np.uint64(key)
    z = (z ^ (z >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    z = (z ^ (z >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return z ^ (z >> np.uint64(31))
