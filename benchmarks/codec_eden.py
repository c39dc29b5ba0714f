"""EDEN: rotation, nearest levels and packing, and back, against copying."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial

import torch
from timing import Case

from slimgrad import kernels
from slimgrad.comm.quantizers import EDEN


def cases(x: torch.Tensor) -> Iterator[Case]:
    """Cases of this group."""
    y = torch.zeros_like(x)
    for bits in (4, 3, 2, 1):
        quantizer = EDEN(bits=bits)
        made = quantizer.quantize(x, key=1)
        settings = {"levels": made.grid.levels, "bits": bits, "key": 1, "serial": True}
        work = partial(quantizer.quantize, x, key=1, serial=True)
        back = partial(
            kernels.rotate_dequantize, made.packed, made.scales, n=len(x), out=y, **settings
        )
        add = partial(kernels.rotate_dequantize_add_, y, made.packed, made.scales, **settings)
        asked = 0.9 if bits == 4 else None
        yield Case(f"EDEN {bits} quantize", work, asked)
        yield Case(f"EDEN {bits} decode", back, asked)
        yield Case(f"EDEN {bits} decode + add", add)
        if bits == 4:
            yield Case(f"EDEN {bits} quantize, AVX2", work, isa="avx2")
            yield Case(f"EDEN {bits} decode, AVX2", back, isa="avx2")
