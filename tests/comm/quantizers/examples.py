"""Instances of every registered quantizer, and vectors that are hard for them."""

import math

import torch

from slimgrad.comm.compressor import Compressor
from slimgrad.comm.quantizers import (
    ALQ,
    AMQ,
    EDEN,
    NUQSGD,
    QSGD,
    Dithered,
    EFSign,
    Levels,
    Natural,
    NoZero,
    QSGDinf,
    Sign,
    TernGrad,
)
from slimgrad.theory import worst_case

N = 512


def adapted(quantizer):
    """With levels chosen for normal components."""
    quantizer.refresh("w", quantizer.counts(normal(20_000)))
    return quantizer


def normal(n=N, seed=17):
    return torch.randn(n, generator=torch.Generator().manual_seed(seed))


EXAMPLES = {
    "alq": [ALQ(), adapted(ALQ(bits=3)), adapted(ALQ(norm="linf"))],
    "amq": [adapted(AMQ(bits=3)), adapted(AMQ(bits=8))],
    "dithered": [Dithered(), Dithered(0.5), Dithered(3.0, bits=2), Dithered(0.05, bits=8)],
    "eden": [EDEN(), EDEN(bits=1)],
    "efsign": [EFSign(bucket_size=N)],
    "levels": [Levels((0, 0.02, 0.05, 0.1, 0.2, 0.4, 1)), Levels((0, 0.3, 1), norm="linf")],
    "natural": [Natural(), Natural(bits=4)],
    "nozero": [
        NoZero(bits=3),
        NoZero("uniform", bits=4),
        NoZero("uniform", bits=4, norm="linf"),
        NoZero(bits=1, norm="linf"),
    ],
    "nuqsgd": [NUQSGD(), NUQSGD(bits=3), NUQSGD(bits=3, norm="linf"), NUQSGD(ratio=0.3)],
    "qsgd": [QSGD(), QSGD(bits=3), QSGD(bits=8)],
    "qsgdinf": [QSGDinf(), QSGDinf(bits=2), QSGDinf(bits=8)],
    "sign": [Sign(bucket_size=N)],
    "terngrad": [TernGrad(), TernGrad(clip=1.0)],
}
QUANTIZERS_HERE = [quantizer for group in EXAMPLES.values() for quantizer in group]
# What a frame of these holds does not depend on the random stream.
NOT_RANDOM = {"efsign", "sign"}


def vectors(quantizer):
    """Vectors of N components by name, among them the worst one for ``quantizer``."""
    sparse, one_hot = torch.zeros(N), torch.zeros(N)
    sparse[:: N // 4] = normal(4)
    one_hot[N // 3] = -2.0
    return {
        "random": normal(),
        "heavy-tailed": normal() ** 5,
        "sparse": sparse,
        "one component": one_hot,
        "equal": torch.full((N,), 0.1),
        "tiny": normal() * 1e-30,
        "huge": normal() * 1e30,
        "worst": worst_vector(quantizer),
    }


def worst_vector(quantizer):
    """The maximiser where theory names one; for others a vector that is hard."""
    name, levels = quantizer.name, quantizer.for_tensor("w").level_grid.levels
    if name in ("dithered", "eden", "efsign", "nozero"):
        one_hot = torch.zeros(N)
        one_hot[7] = 1.0
        return one_hot
    if name == "natural":
        return torch.full((N,), 4 / 3)
    if quantizer.norm == "linf" or quantizer.bits == 8:
        first = levels[1]
        worst = torch.full((N,), (math.sqrt(1 + (N - 1) * first**2) - 1) / ((N - 1) * first))
        worst[0] = 1.0
        return worst
    if name in ("nuqsgd", "qsgd") and getattr(quantizer, "ratio", 0.5) == 0.5:
        worst = worst_case(levels, N)
        parts = zip(worst.magnitudes, worst.counts, strict=True)
        return torch.cat([torch.full((count,), magnitude) for magnitude, count in parts])
    return torch.ones(N)


def repeated(quantizer, vector, repeats):
    """(repeats, N) roundings of ``vector``, float64, each a bucket with rounding of its own."""
    compressor = Compressor(quantizer)
    frame = compressor.compress(vector.repeat(repeats), key="w", step=0)
    return compressor.decompress(frame).view(repeats, N).double()
