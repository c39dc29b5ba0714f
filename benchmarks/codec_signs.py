"""Signs, levels without zero, powers of two, and the scales of buckets alone, against copying."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial

import torch
from timing import Case

from slimgrad import kernels

OCTAVES = (0.0, *(2.0 ** (j - 127) for j in range(1, 128)))
ODD = tuple((2 * j + 1) / 15 for j in range(8))


def cases(x: torch.Tensor) -> Iterator[Case]:
    """What is timed; nothing was asked of these."""
    common = {"bucket_size": 512, "serial": True}
    for norm in ("l2", "linf", "mean", "power_of_two"):
        yield Case(f"{norm} of buckets", partial(kernels.bucket_scales, x, norm=norm, **common))
    yield Case("signs", partial(kernels.quantize_signs, x, norm="mean", **common))
    natural = {"levels": OCTAVES, "grid": "exponential", "norm": "power_of_two", "bits": 8}
    yield Case("natural 8", partial(kernels.quantize, x, key=1, **natural, **common))
    no_zero = {"levels": ODD, "norm": "l2", "bits": 4}
    yield Case("no zero 4", partial(kernels.quantize_no_zero, x, key=1, **no_zero, **common))
    scales, packed = kernels.quantize_signs(x, norm="mean", **common)
    out = torch.zeros_like(x)
    layout = {"levels": (1.0,), "bits": 1, **common}
    yield Case(
        "signs unpack + add", partial(kernels.dequantize_add_, out, packed, scales, **layout)
    )
