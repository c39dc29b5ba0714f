"""All figures of quantizers and codecs: speed beside copying memory, and size, asked and reached.

Every file codec_GROUP.py beside this one is a group. One thread unless a row says otherwise; the
vector is far larger than the caches; see timing.py.

    python benchmarks/codec.py --gradient gradient.pt --json rows.json
    python benchmarks/codec.py --groups quantize --rounds 5
"""

from __future__ import annotations

import argparse
import importlib
import sys
from pathlib import Path

import timing
import torch

from slimgrad.kernels import backend


def groups() -> list[str]:
    """Names of the groups there are."""
    return sorted(path.stem[len("codec_") :] for path in Path(__file__).parent.glob("codec_*.py"))


def main() -> int:
    parser = argparse.ArgumentParser(description="Figures of quantizers and codecs.")
    parser.add_argument("--groups", nargs="+", choices=groups(), default=groups())
    parser.add_argument("--n", type=int, default=25_000_000, help="components (default 25 million)")
    parser.add_argument("--rounds", type=int, default=7, help="rounds (default 7)")
    parser.add_argument("--gradient", type=Path, help="gradients saved by real_gradient.py")
    parser.add_argument("--json", type=Path, help="write the rows, versions and hardware there")
    options = parser.parse_args()
    if not backend.usable_isas():
        print("the C++ kernels were not built: nothing to compare", file=sys.stderr)
        return 2
    torch.set_num_threads(1)
    x = timing.gradient(options.gradient, options.n)
    source = "a Gaussian vector" if options.gradient is None else options.gradient.name
    print(f"{source}, {len(x)} components, {options.rounds} rounds; {timing.versions()}")
    rows = []
    for group in options.groups:
        found = timing.figures(
            x, importlib.import_module(f"codec_{group}").cases(x), options.rounds
        )
        timing.show(found)
        rows += [{"group": group, "vector": source, "n": len(x), **row} for row in found]
    if options.json is not None:
        timing.write_json(options.json, rows)
    return 1 if any(row["met"] is False for row in rows) else 0


if __name__ == "__main__":
    sys.exit(main())
