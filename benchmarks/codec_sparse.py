"""Selection, sparse and low-rank frames, and feedback: speed beside torch and beside copying."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial

import torch
from timing import Case, Size

from slimgrad import kernels
from slimgrad.comm import frame as wire
from slimgrad.comm.compressor import Compressor
from slimgrad.comm.feedback import DGC, ErrorFeedback
from slimgrad.comm.feedback_memory import FeedbackMemory
from slimgrad.comm.lowrank import PowerSGD
from slimgrad.comm.quantizers import NUQSGD
from slimgrad.comm.sparsifiers import Atomo, RandomK, TopK

KEEP = 0.01
LAYER = (512, 4608)  # the largest layer of ResNet-18


def cases(x: torch.Tensor) -> Iterator[Case | Size]:
    """Keeping one component in a hundred, and factors of rank 4."""
    k = round(KEEP * len(x))
    magnitudes = x.abs()
    yield Case("torch.topk", partial(torch.topk, magnitudes, k, sorted=False), rounds=3)
    for isa in ("auto", "avx2", "baseline"):
        name = "selection" if isa == "auto" else f"selection, {isa}"
        asked = 5 if isa == "auto" else None
        yield Case(name, partial(kernels.topk_places, x, k), asked, "torch.topk", isa)
    yield Case("selection / copy", partial(kernels.topk_places, x, k))
    yield from frames(x)
    yield from layers(x)


def frames(x: torch.Tensor) -> Iterator[Case | Size]:
    """Whole frames of the whole vector."""
    out = torch.zeros_like(x)
    for name, method, values in (
        ("top-k", TopK(KEEP), None),
        ("top-k of 4 bits", TopK(KEEP), NUQSGD(bits=4)),
        ("random-k", RandomK(KEEP), None),
        ("ATOMO", Atomo(KEEP), None),
    ):
        compressor = Compressor(method, values=values)
        settings = {"key": "w", "step": 0, "serial": True}
        frame = compressor.compress(x, **settings)
        rounds = 3 if name == "ATOMO" else None
        yield Case(f"{name}: encode", partial(compressor.compress, x, **settings), rounds=rounds)
        add = partial(compressor.decompress_add_, frame, out, serial=True)
        yield Case(f"{name}: decode and add", add)
        yield Size(f"{name}: bits", 8 * frame.numel() / len(x))
        if name == "top-k":
            decoded = wire.decode(frame)
            bits = 8 * decoded.payload.numel() / decoded.inner[0].header.n
            yield Size("top-k: bits a place", bits)


def layers(x: torch.Tensor) -> Iterator[Case]:
    """Stretches as large as the largest layer of a network, each with a memory of its own."""
    size = LAYER[0] * LAYER[1]
    parts = [part.view(LAYER) for part in x.split(size) if part.numel() == size]
    share = len(parts) * size / len(x)
    if not parts:
        return
    sparse, settings = Compressor(TopK(KEEP)), {"step": 0, "rank": 0, "seed": 0}

    def alone() -> None:
        for part in parts:
            sparse.compress(part, key="w", step=0, serial=True)

    yield Case("top-k by layer: encode", alone, share=share)
    for feedback in (ErrorFeedback(), DGC()):
        memory = FeedbackMemory(feedback, 0, 1)

        def remembering(memory: FeedbackMemory = memory) -> None:
            for index, part in enumerate(parts):
                memory.compress(part, sparse, key=str(index), **settings)

        yield Case(f"top-k by layer, {feedback.name} feedback: encode", remembering, share=share)
    power, total = Compressor(PowerSGD(rank=4)), torch.zeros(size)
    frame = power.compress(parts[0], key="w", step=0)
    encode = partial(power.compress, parts[0], key="w", step=0, serial=True)
    yield Case("PowerSGD rank 4: encode", encode, share=size / len(x))
    add = partial(power.decompress_add_, frame, total, serial=True)
    yield Case("PowerSGD rank 4: decode and add", add, share=size / len(x))
