"""Quantize + pack, and unpack + add, against copying, reading, casting and plain torch."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import partial

import torch
from timing import Case

from slimgrad import kernels

Buffers = tuple[torch.Tensor, torch.Tensor]


@dataclass(frozen=True)
class Setting:
    """One setting of the quantizer."""

    name: str
    grid: str
    norm: str
    bits: int
    bucket_size: int

    def __str__(self) -> str:
        return f"{self.name} {self.bits} {self.bucket_size}"

    def layout(self) -> dict:
        """What both directions need."""
        m = 2 ** (self.bits - 1) - 1
        levels = {
            "uniform": tuple(j / m for j in range(m + 1)),
            "exponential": (0.0, *(2.0 ** (j - m) for j in range(1, m + 1))),
            "table": tuple((j / m) ** 1.7 for j in range(m + 1)),
        }[self.grid]
        return {"levels": levels, "bits": self.bits, "bucket_size": self.bucket_size}

    def quantize(self, x: torch.Tensor, serial: bool = True, out: Buffers | None = None) -> Buffers:
        """Scales and packed symbols of ``x``."""
        settings = self.layout()
        return kernels.quantize(
            x, grid=self.grid, norm=self.norm, key=1, serial=serial, out=out, **settings
        )

    def add(self, out: torch.Tensor, scales: torch.Tensor, packed: torch.Tensor) -> torch.Tensor:
        """Adds the packed vector to ``out``."""
        return kernels.dequantize_add_(out, packed, scales, serial=True, **self.layout())


@dataclass(frozen=True)
class DitherSetting:
    """One setting of the dither."""

    bits: int
    bucket_size: int

    def __str__(self) -> str:
        return f"dither {self.bits} {self.bucket_size}"

    def quantize(self, x: torch.Tensor, serial: bool = True, out: Buffers | None = None) -> Buffers:
        """Steps and packed symbols of ``x``."""
        return kernels.dither(
            x,
            step_rms=1.0,
            bits=self.bits,
            bucket_size=self.bucket_size,
            key=1,
            serial=serial,
            out=out,
        )

    def add(self, out: torch.Tensor, steps: torch.Tensor, packed: torch.Tensor) -> torch.Tensor:
        """Adds the packed vector to ``out``."""
        layout = {"bits": self.bits, "bucket_size": self.bucket_size}
        return kernels.undither_add_(out, packed, steps, key=1, serial=True, **layout)


MAIN = [
    Setting("NUQSGD", "exponential", "l2", 4, 512),
    Setting("NUQSGD", "exponential", "l2", 4, 8192),
    Setting("QSGDinf", "uniform", "linf", 4, 512),
    Setting("QSGDinf", "uniform", "linf", 4, 8192),
    DitherSetting(4, 512),
    DitherSetting(4, 8192),
]
WIDTHS = [
    Setting(name, grid, norm, bits, 512)
    for name, grid, norm in (("NUQSGD", "exponential", "l2"), ("QSGDinf", "uniform", "linf"))
    for bits in (2, 3, 8)
]
DITHERS = [DitherSetting(bits, 512) for bits in (2, 3, 8)]
TABLES = [Setting("table", "table", "l2", bits, 512) for bits in (3, 4, 8)]


def cases(x: torch.Tensor) -> Iterator[Case]:
    """Cases of this group."""
    y = torch.zeros_like(x)
    for setting in MAIN:
        scales, packed = setting.quantize(x)
        # Copying, reading and casting write to memory that is there already; so does this.
        work = partial(setting.quantize, x, out=(scales, packed))
        yield Case(f"{setting} quantize", work, asked=1.5)
        yield Case(f"{setting} quantize, AVX2", work, asked=1.1, isa="avx2")
        yield Case(f"{setting} quantize / read", work, asked=0.65, against="read")
        yield Case(f"{setting} quantize / cast", work, asked=3.0, against="cast")
        add = partial(setting.add, y, scales, packed)
        yield Case(f"{setting} unpack + add", add, asked=1.3)
        yield Case(f"{setting} unpack + add, AVX2", add, isa="avx2")
    for setting in WIDTHS + TABLES:
        scales, packed = setting.quantize(x)
        against = f"{'QSGDinf' if setting.grid == 'uniform' else 'NUQSGD'} 4 512"
        work = partial(setting.quantize, x, out=(scales, packed))
        yield Case(f"{setting} quantize", work, against=f"{against} quantize")
        add = partial(setting.add, y, scales, packed)
        yield Case(f"{setting} unpack + add", add, against=f"{against} unpack + add")
    for setting in DITHERS:
        steps, packed = setting.quantize(x)
        work = partial(setting.quantize, x, out=(steps, packed))
        add = partial(setting.add, y, steps, packed)
        yield Case(f"{setting} quantize", work, against="dither 4 512 quantize")
        yield Case(f"{setting} unpack + add", add, against="dither 4 512 unpack + add")
    yield from threads(x)
    yield from plain_torch(x)


def threads(x: torch.Tensor) -> Iterator[Case]:
    """Two threads against one."""
    for setting, asked in ((MAIN[0], 1.5), (MAIN[2], 1.8), (MAIN[4], 1.8)):
        alone, out = f"{setting} quantize, wall time", setting.quantize(x)
        yield Case(alone, partial(setting.quantize, x, out=out))
        both = partial(setting.quantize, x, serial=False, out=out)
        yield Case(f"{setting} quantize, 2 threads", both, asked, against=alone, threads=2)


def plain_torch(x: torch.Tensor) -> Iterator[Case]:
    """NUQSGD and packing as one writes them in torch, eager and compiled."""
    part = x[: min(1 << 22, len(x) // 512 * 512)]
    share = len(part) / len(x)
    eager = f"{MAIN[0]} in eager torch"
    yield Case(eager, partial(nuqsgd_in_torch, part), share=share, rounds=3)
    yield Case(f"{MAIN[0]} quantize / eager", partial(MAIN[0].quantize, x), 100, against=eager)
    compiled = torch.compile(nuqsgd_in_torch)
    name = f"{MAIN[0]} in compiled torch"
    yield Case(name, partial(compiled, part), share=share, rounds=3)
    yield Case(f"{MAIN[0]} quantize / compiled", partial(MAIN[0].quantize, x), 50, against=name)


def nuqsgd_in_torch(x: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
    """4-bit NUQSGD of buckets of 512, two symbols a byte."""
    rows = x.view(-1, 512)
    norms = rows.norm(dim=1, keepdim=True)
    fraction = rows.abs() / norms
    exponent = torch.frexp(fraction)[1].float().clamp(-6, 1)
    low = torch.where(fraction < 2.0**-6, 0.0, torch.exp2(exponent - 1))
    high = torch.where(fraction < 2.0**-6, 2.0**-6, torch.exp2(exponent))
    up = torch.rand_like(rows) * (high - low) < fraction - low
    magnitude = torch.where(fraction < 2.0**-6, 0.0, exponent + 6) + up
    symbol = magnitude.clamp(max=7).to(torch.uint8) | ((rows < 0).to(torch.uint8) << 3)
    pairs = symbol.view(-1, 2)
    return norms, pairs[:, 0] | (pairs[:, 1] << 4)
