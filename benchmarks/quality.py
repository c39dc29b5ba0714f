"""Variance against bits sent, of every quantizer on real gradients: asked and reached.

Tensors are compressed one by one as an exchange does; those it sends exactly are left out. Bits
count whole frames: headers, tables, scales and payload. relvar is the squared error over the
squared length of a step's gradient; the worst of the steps counts, for bits too.

    python benchmarks/quality.py --gradient gradient.pt --json rows.json
"""

from __future__ import annotations

import argparse
import sys
from dataclasses import dataclass, replace
from pathlib import Path

import timing
import torch

from slimgrad.comm.compressor import Compressor
from slimgrad.comm.policy import Policy
from slimgrad.comm.quantizers import (
    ALQ,
    AMQ,
    EDEN,
    NUQSGD,
    QSGD,
    AdaptiveQuantizer,
    Dithered,
    EFSign,
    Natural,
    NoZero,
    QSGDinf,
    Quantizer,
    TernGrad,
)

BASELINE = "NUQSGD 4"
Gradients = dict[str, dict[str, torch.Tensor]]


@dataclass(frozen=True)
class Setting:
    """A quantizer, its codec, and what is asked of them.

    Attributes:
        name: of the row.
        quantizer, codec: what is measured.
        relvar: largest relative variance asked for.
        bits: most bits a component asked for.
        share: largest relvar asked for, as a share of that of NUQSGD with 4 bits.
    """

    name: str
    quantizer: Quantizer
    codec: str = "fixed"
    relvar: float | None = None
    bits: float | None = None
    share: float | None = None


SETTINGS = [
    Setting(BASELINE, NUQSGD(bits=4)),
    Setting("NUQSGD 4 + rans", NUQSGD(bits=4), "rans"),
    Setting("NUQSGD 4 + huffman_pairs", NUQSGD(bits=4), "huffman_pairs", bits=2.9),
    Setting("NUQSGD 4 + context", NUQSGD(bits=4), "context", bits=2.75),
    Setting("dithered 1 rms + rans", Dithered(), "rans", relvar=0.09, bits=2.25),
    Setting("dithered 0.98 rms + rans", Dithered(0.98), "rans", relvar=0.09, bits=2.25),
    Setting("dithered 1 rms, 5 bits + rans", Dithered(bits=5), "rans", relvar=0.09, bits=2.25),
    Setting("dithered 1 rms + context", Dithered(), "context"),
    Setting("dithered 0.51 rms, 5 bits + rans", Dithered(0.51, 5), "rans", bits=3.1, share=0.25),
    Setting("EDEN 4", EDEN(bits=4), share=0.125),
    *(Setting(f"EDEN {bits}", EDEN(bits=bits)) for bits in (3, 2, 1)),
    Setting("NUQSGD 3", NUQSGD(bits=3)),
    Setting("QSGD 4", QSGD(bits=4)),
    Setting("QSGDinf 4", QSGDinf(bits=4)),
    Setting("QSGDinf 4 + rans", QSGDinf(bits=4), "rans"),
    Setting("no zero, uniform 4", NoZero("uniform", bits=4)),
    Setting("no zero, exponential 4", NoZero("exponential", bits=4)),
    Setting("ALQ 4", ALQ(bits=4)),
    Setting("ALQ 4, maximum norm", ALQ(bits=4, norm="linf")),
    Setting("AMQ 4", AMQ(bits=4)),
    Setting("TernGrad + rans", TernGrad(), "rans"),
    Setting("TernGrad clipped at 2.5 + rans", TernGrad(clip=2.5), "rans"),
    Setting("natural 8 + rans", Natural(), "rans"),
    Setting("EF-sign", EFSign()),
]


def load(path: Path | None) -> Gradients:
    """Tensors by step and name that an exchange would compress."""
    if path is None:
        generator = torch.Generator().manual_seed(0)
        return {"gaussian": {"weight": torch.randn(1 << 20, generator=generator)}}
    steps: Gradients = {}
    policy = Policy()
    for name, tensor in torch.load(path, map_location="cpu", weights_only=True).items():
        step, _, parameter = name.partition("/")
        if not policy.is_exact(parameter, tuple(tensor.shape)):
            steps.setdefault(step, {})[parameter] = tensor.flatten().float()
    return steps


def measure(setting: Setting, gradients: Gradients) -> tuple[float, float]:
    """The worst relvar and the most bits a component over the steps."""
    worst, most = 0.0, 0.0
    for number, tensors in enumerate(gradients.values()):
        quantizer = setting.quantizer
        if isinstance(quantizer, AdaptiveQuantizer):
            quantizer = replace(quantizer)  # levels of its own for this step
            for name, tensor in tensors.items():
                quantizer.refresh(name, quantizer.counts(tensor))
        compressor = Compressor(quantizer, setting.codec)
        error = signal = sent = 0.0
        for name, tensor in tensors.items():
            frame = compressor.compress(tensor, key=name, step=number)
            back = compressor.decompress(frame)
            error += float((back - tensor).square().sum(dtype=torch.float64))
            signal += float(tensor.square().sum(dtype=torch.float64))
            sent += 8 * frame.numel()
        components = sum(tensor.numel() for tensor in tensors.values())
        worst, most = max(worst, error / signal), max(most, sent / components)
    return worst, most


def row_of(setting: Setting, relvar: float, bits: float, baseline: float) -> dict:
    """What was asked and what was reached."""
    asked = [setting.relvar, setting.share, setting.bits]
    reached = [relvar, relvar / baseline, bits]
    checks = [found <= limit for found, limit in zip(reached, asked, strict=True) if limit]
    return {
        "name": setting.name,
        "quantizer": repr(setting.quantizer),
        "codec": setting.codec,
        "relvar": relvar,
        "relvar asked": setting.relvar,
        "share of NUQSGD 4": relvar / baseline,
        "share asked": setting.share,
        "bits": bits,
        "bits asked": setting.bits,
        "met": all(checks) if checks else None,
    }


def show(row: dict) -> None:
    """One line; each figure asked stands behind the one reached."""

    def figure(value: str, asked: str) -> str:
        limit = "" if row[asked] is None else f"<= {row[asked]:.3g}"
        return f"{row[value]:8.4f} {limit:<9}"

    verdict = {True: "met", False: "MISSED", None: ""}[row["met"]]
    print(
        f"{row['name']:<34} relvar {figure('relvar', 'relvar asked')} "
        f"share {figure('share of NUQSGD 4', 'share asked')} "
        f"bits {figure('bits', 'bits asked')} {verdict}",
        flush=True,
    )


def main() -> int:
    parser = argparse.ArgumentParser(description="Variance against bits of every quantizer.")
    parser.add_argument("--gradient", type=Path, help="gradients saved by real_gradient.py")
    parser.add_argument("--json", type=Path, help="write the rows, versions and hardware there")
    options = parser.parse_args()
    torch.set_num_threads(1)
    gradients = load(options.gradient)
    baseline, rows = 0.0, []
    for setting in SETTINGS:
        relvar, bits = measure(setting, gradients)
        baseline = relvar if setting.name == BASELINE else baseline
        rows.append(row_of(setting, relvar, bits, baseline))
        show(rows[-1])
    if options.json is not None:
        timing.write_json(options.json, rows)
    return 1 if any(row["met"] is False for row in rows) else 0


if __name__ == "__main__":
    sys.exit(main())
