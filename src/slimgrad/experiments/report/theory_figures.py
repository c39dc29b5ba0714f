"""Figures of the theory: levels and rounding, the best ratio, bounds against bits and buckets."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from slimgrad.core.errors import ConfigError
from slimgrad.experiments.report import svg
from slimgrad.experiments.report.figures import DrawnFigure
from slimgrad.theory import (
    exponential_levels,
    uniform_levels,
    variance_bound,
    worst_case_variance,
)

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

_WIDTH = 6.4
_DRAWN_BITS = range(2, 9)
_BUCKET_SIZES = tuple(2**k for k in range(4, 17))
_RATIO_BITS = (3, 4, 5)
_LONGEST = 10**9
# Name, norm, colour, marker and dashes.
_QUANTIZERS = (
    ("NUQSGD", "l2", 1, "o", (None, None)),
    ("QSGD", "l2", 2, "s", (6, 2)),
    ("QSGDinf", "linf", 3, "^", (2, 1.6)),
)


def theory_figures(*, bits: int = 3, bucket_size: int = 8192) -> list[DrawnFigure]:
    """All figures as files of their own.

    Args:
        bits: width of a symbol whose levels are drawn, 2 to 5; more cannot be told apart.
        bucket_size: components that share a norm, where a figure fixes it, 2 to 10**9.

    Raises:
        ConfigError: a number out of range.
    """
    if not 2 <= bits <= 5:
        raise ConfigError(f"bits = {bits}: levels can be drawn for 2 to 5 bits")
    if not 2 <= bucket_size <= _LONGEST:
        raise ConfigError(f"bucket_size = {bucket_size}: must be from 2 to {_LONGEST:,}")
    return [
        levels_figure(bits),
        ratio_figure(bucket_size),
        bounds_figure(bucket_size),
    ]


def levels_figure(bits: int) -> DrawnFigure:
    """For each level the probability that a magnitude is rounded to it."""
    name, title = "levels", f"Where a magnitude is rounded to, {bits} bits"
    grids = {"NUQSGD": _levels("NUQSGD", bits), "QSGD": _levels("QSGD", bits)}
    with svg.drawing(name):
        figure, stacked = _panels(2, 1, 3.9)
        for axes, (quantizer, levels) in zip(stacked, grids.items(), strict=True):
            _hats(axes, levels)
            axes.set_title(f"{quantizer}: {len(levels)} levels")
            axes.set_ylabel("probability")
        stacked[-1].set_xlabel("|component| / norm of the bucket")
        spoken = "; ".join(
            f"{quantizer}: levels {', '.join(f'{level:.3g}' for level in levels)}"
            for quantizer, levels in grids.items()
        )
        text = svg.to_inline_svg(figure, name, title, f"{title}. {spoken}.")
    caption = (
        f"{title}: each triangle is one level; its height is the probability of being rounded to "
        "that level, so that the mean is the magnitude itself."
    )
    return DrawnFigure(name, caption, svg.standalone(text))


def ratio_figure(bucket_size: int) -> DrawnFigure:
    """The largest variance over all vectors against the ratio of the levels."""
    name, title = "ratio", f"Largest variance by ratio of levels, buckets of {bucket_size:,}"
    ratios = np.linspace(0.02, 0.98, 121)
    ends = []
    with svg.drawing(name):
        figure, (axes,) = _panels(1, 1, 3.5)
        for index, bits in enumerate(_RATIO_BITS, start=1):
            largest = [
                worst_case_variance(exponential_levels(_inner(bits), p), bucket_size, relaxed=True)
                for p in ratios
            ]
            best = int(np.argmin(largest))
            colour = svg.SERIES[index]
            dashes = _QUANTIZERS[index - 1][4]
            axes.plot(ratios, largest, color=colour, dashes=dashes, label=f"{bits} bits")
            axes.plot([ratios[best]], [largest[best]], color=colour, marker="o", markersize=6)
            place = (ratios[best], largest[best])
            axes.annotate(
                f"{ratios[best]:.2f}", place, (-6, -11), textcoords="offset points", ha="right"
            )
            ends.append(f"{bits} bits: least {largest[best]:.3g} at ratio {ratios[best]:.2f}")
        axes.axvline(0.5, color=svg.FAINT, linewidth=1)
        axes.set_yscale("log")
        axes.margins(y=0.12)
        axes.set_xlabel("ratio of neighbouring levels")
        axes.set_ylabel("largest relative variance")
        axes.set_title(title)
        figure.legend(loc="outside lower center", ncols=len(_RATIO_BITS), handlelength=3.2)
        text = svg.to_inline_svg(figure, name, title, f"{title}. {'; '.join(ends)}.")
    caption = f"{title}; marks are the best ratios, the upright line is the usual one half."
    return DrawnFigure(name, caption, svg.standalone(text))


def bounds_figure(bucket_size: int) -> DrawnFigure:
    """Variance bounds of three quantizers against bits, and against the length of a bucket."""
    name, title = "bounds", "Variance bounds by bits and by bucket"
    ends = []
    with svg.drawing(name):
        figure, (left, right) = _panels(1, 2, 3.4)
        for quantizer, norm, index, marker, dashes in _QUANTIZERS:
            by_bits = [
                variance_bound(_levels(quantizer, bits), bucket_size, norm) for bits in _DRAWN_BITS
            ]
            levels = _levels(quantizer, 4)
            by_bucket = [variance_bound(levels, size, norm) for size in _BUCKET_SIZES]
            style = {"color": svg.SERIES[index], "marker": marker, "markersize": 4}
            left.plot(_DRAWN_BITS, by_bits, dashes=dashes, label=quantizer, **style)
            right.plot(_BUCKET_SIZES, by_bucket, dashes=dashes, **style)
            ends.append(f"{quantizer} at 4 bits and {bucket_size:,}: {by_bits[2]:.3g}")
        for axes in (left, right):
            axes.set_yscale("log")
        right.set_xscale("log", base=2)
        left.set_xlabel("bits a component")
        right.set_xlabel("components in a bucket")
        left.set_ylabel("bound on the relative variance")
        left.set_title(f"Buckets of {bucket_size:,}")
        right.set_title("4 bits")
        figure.legend(loc="outside lower center", ncols=len(_QUANTIZERS), handlelength=3.2)
        text = svg.to_inline_svg(figure, name, title, f"{title}. {'; '.join(ends)}.")
    caption = f"{title}: variance added, as a share of the squared norm, for the worst vector."
    return DrawnFigure(name, caption, svg.standalone(text))


def _levels(quantizer: str, bits: int) -> tuple[float, ...]:
    if quantizer == "NUQSGD":
        return exponential_levels(_inner(bits))
    return uniform_levels(_inner(bits) + 1)


def _inner(bits: int) -> int:
    """Levels strictly between 0 and 1 of a symbol with a sign."""
    return 2 ** (bits - 1) - 2


def _hats(axes: Axes, levels: tuple[float, ...]) -> None:
    """One triangle a level, between its neighbours."""
    for index, level in enumerate(levels):
        below = levels[max(index - 1, 0)]
        above = levels[min(index + 1, len(levels) - 1)]
        colour = svg.SERIES[1 + index % 3]
        axes.plot([below, level, above], [float(below == level), 1, float(above == level)],
                  color=colour)  # fmt: skip
        axes.fill_between(
            [below, level, above],
            [float(below == level), 1, float(above == level)],
            color=colour,
            alpha=0.12,
            linewidth=0,
        )
    axes.set_xlim(-0.01, 1.01)
    axes.set_ylim(0, 1.08)
    axes.set_yticks([0, 0.5, 1])


def _panels(rows: int, columns: int, height: float) -> tuple[Figure, list[Axes]]:
    from matplotlib.figure import Figure

    figure = Figure(figsize=(_WIDTH, height), layout="constrained")
    return figure, list(figure.subplots(rows, columns, squeeze=False).ravel())
