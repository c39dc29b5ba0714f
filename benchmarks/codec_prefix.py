"""Elias and Huffman codecs of 4-bit NUQSGD symbols against the quantizer that makes them."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial

import torch
from timing import Case, Size

from slimgrad.comm.codecs import CODECS
from slimgrad.comm.quantizers import NUQSGD

# Least speeds, in that of the quantizer, and most bits with the scales.
ASKED = {"huffman_pairs": (0.6, 0.6, 2.9), "huffman": (None, None, None)}


def cases(x: torch.Tensor) -> Iterator[Case | Size]:
    """Cases of this group."""
    quantizer = NUQSGD(bits=4, bucket_size=512)
    base = "NUQSGD 4 512 quantizer"
    yield Case(base, partial(quantizer.quantize, x, 1, serial=True))
    quantized = quantizer.quantize(x, 1)
    n = quantized.symbols
    scales = 32 * len(quantized.scales) / n
    for name in ("huffman_pairs", "huffman", "elias_omega", "elias_gamma", "elias_delta"):
        codec = CODECS.get(name)()
        encode, decode, bits = ASKED.get(name, (None, None, None))
        payload = codec.encode(quantized).clone()
        rounds = 3 if name.startswith("elias") else None
        work = partial(codec.encode, quantized)
        yield Case(f"{name} encode", work, encode, base, rounds=rounds)
        work = partial(codec.decode, payload, n, 4)
        yield Case(f"{name} decode", work, decode, base, rounds=rounds)
        yield Size(f"{name}, scales included", 8 * len(payload) / n + scales, bits)
