"""``slimgrad theory plot``: the figures of the theory as SVG files."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

from slimgrad.cli.output import FLAG, print_json


def plot(
    *,
    out: Path = Path("theory-figures"),
    bits: int = 3,
    bucket_size: int = 8192,
    json: Annotated[bool, FLAG] = False,
) -> int:
    """Draw levels, the best ratio, and the variance bounds; writes SVG files into OUT.

    Args:
        out: Folder to write to; figures of an earlier call are replaced.
        bits: Width whose levels are drawn, 2 to 5.
        bucket_size: Components that share a norm, for the figures that fix it.
        json: Print JSON on stdout and nothing else there.
    """
    from slimgrad.experiments.files import write_text
    from slimgrad.experiments.report.theory_figures import theory_figures

    figures = theory_figures(bits=bits, bucket_size=bucket_size)
    out.mkdir(parents=True, exist_ok=True)
    written = {}
    for figure in figures:
        path = out / f"{figure.name}.svg"
        write_text(path, figure.svg)
        written[figure.name] = {"path": str(path), "caption": figure.caption}
    if json:
        print_json({"figures": written})
    else:
        for name, facts in written.items():
            print(f"{facts['path']}\n  {facts['caption']}" if name else "")
    return 0
