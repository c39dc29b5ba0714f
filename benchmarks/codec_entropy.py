"""Entropy codecs and checksum: speed beside the 4-bit quantizer, size beside the entropy."""

from __future__ import annotations

import zlib
from collections.abc import Iterator
from functools import partial

import torch
from timing import Case, Size

from slimgrad import kernels
from slimgrad.comm.codecs import CODECS, Rans
from slimgrad.comm.quantizers import NUQSGD
from slimgrad.comm.quantizers.base import LevelGrid, Quantized

QUANTIZER = "NUQSGD 4 bits, quantize"
ASKED = {"rans": 0.8, "context": 0.3}
# The first is the least ratio of a symbol's probability to that of the one before.
ENTROPIES = {0.3: 0.0525, 1.0: 0.23, 2.0: 0.5, 3.0: 0.727, 3.5: 0.82}


def cases(x: torch.Tensor) -> Iterator[Case | Size]:
    """Encoding and decoding the symbols of NUQSGD with 4 bits and buckets of 512."""
    quantizer = NUQSGD(bits=4, bucket_size=512)
    quantized = quantizer.quantize(x, key=1)
    yield Case(QUANTIZER, partial(quantizer.quantize, x, key=1))
    for name, asked in ASKED.items():
        codec = CODECS.get(name)()
        payload = codec.encode(quantized)
        for isa in ("auto", "avx2"):
            # Each instruction set beside the quantizer of its own.
            against = QUANTIZER if isa == "auto" else f"{QUANTIZER}, {isa}"
            if isa != "auto" and name == "rans":
                yield Case(against, partial(quantizer.quantize, x, key=1), isa=isa)
            least = asked if isa == "auto" else None
            label = name if isa == "auto" else f"{name}, {isa}"
            yield Case(f"{label}: encode", partial(codec.encode, quantized), least, against, isa)
            decode = partial(codec.decode, payload, len(x), 4)
            yield Case(f"{label}: decode", decode, least, against, isa)
        bits = 8 * payload.numel() / len(x)
        scales = 32 * len(quantized.scales) / len(x)
        yield Size(f"{name}: bits with scales", bits + scales, 2.75 if name == "context" else None)
        if name == "rans":
            yield Size("rans: bits", bits, entropy(quantized) + 0.02)
    for aim, ratio in ENTROPIES.items():
        made = symbols(len(x), ratio)
        size = 8 * Rans().encode(made).numel() / len(x)
        yield Size(f"rans: bits at an entropy of {aim}", size, entropy(made) + 0.02)
    octets = quantized.packed
    yield Case("checksum by zlib", partial(zlib.crc32, octets.numpy().data), None, QUANTIZER)
    yield Case("checksum", partial(kernels.crc32, octets), None, "checksum by zlib")


def entropy(quantized: Quantized) -> float:
    """Entropy of the symbols, in bits."""
    counts = kernels.symbol_counts(quantized.packed, quantized.symbols, quantized.bits)
    shares = counts[counts > 0].double() / counts.sum()
    return float(-(shares * shares.log2()).sum())


def symbols(n: int, ratio: float) -> Quantized:
    """Symbols of 4 bits, each ``ratio`` times as probable as the one below it."""
    weights = ratio ** torch.arange(16, dtype=torch.float64)
    edges = (weights / weights.sum()).cumsum(0).float()[:-1]
    draws = torch.rand(n, generator=torch.Generator().manual_seed(0))
    packed = kernels.pack_symbols(torch.bucketize(draws, edges).to(torch.uint8), 4)
    grid = LevelGrid("uniform", tuple(j / 7 for j in range(8)))
    return Quantized(n, 4, 512, grid, "linf", torch.ones(-(-n // 512)), packed, key=0)
