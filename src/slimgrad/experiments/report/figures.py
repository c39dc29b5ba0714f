"""The figures of a report as inline SVG: curves over training, intervals, bits."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING

from slimgrad.experiments.report import svg
from slimgrad.experiments.report.cells import percent, plain, unit_of
from slimgrad.experiments.runs import Epoch, RecordedComparison
from slimgrad.experiments.statistics import Estimate
from slimgrad.experiments.summary import QUANTITIES, Summary

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

# Six dashes and seven colours: methods that share a colour differ in dashes.
_DASHES = ((), (6, 2), (2, 1.6), (7, 2, 1.6, 2), (4, 1.5), (1.2, 1.2))
_MARKERS = ("o", "s", "^", "D", "v", "P", "X")
# Longest label, in characters; ends of intervals beyond this are drawn as arrows, in per cent.
_LABEL, _FAR = 22, 150
_WIDTH, _HEIGHT = 4.5, 3.5

Value = Callable[[Epoch], float | None]


@dataclass(frozen=True)
class DrawnFigure:
    """A figure of the report.

    Attributes:
        name: id within the page.
        caption: what is drawn and how to read it.
        svg: one ``<svg>`` element.
    """

    name: str
    caption: str
    svg: str


def all_figures(comparison: RecordedComparison, summary: Summary) -> list[DrawnFigure]:
    """Every figure there are data for, in the order of the report."""
    found = [
        _curves(comparison, *curve)
        for curve in (
            ("accuracy-epoch", "Test accuracy by epoch", "epoch", "%", _epoch, _accuracy),
            ("accuracy-time", "Test accuracy by training time", "s", "%", _seconds, _accuracy),
            ("train-loss", "Training loss by epoch", "epoch", "loss", _epoch, _train_loss),
            ("test-loss", "Test loss by epoch", "epoch", "loss", _epoch, _test_loss),
        )
    ]
    found += [_forest(summary), _bits(summary)]
    return [figure for figure in found if figure is not None]


def _epoch(epoch: Epoch) -> float | None:
    return float(epoch.epoch)


def _seconds(epoch: Epoch) -> float | None:
    return epoch.elapsed_seconds


def _accuracy(epoch: Epoch) -> float | None:
    return None if epoch.test_accuracy is None else epoch.test_accuracy * 100


def _train_loss(epoch: Epoch) -> float | None:
    return epoch.train_loss


def _test_loss(epoch: Epoch) -> float | None:
    return epoch.test_loss


def _curves(
    comparison: RecordedComparison,
    name: str,
    title: str,
    x_unit: str,
    y_unit: str,
    x: Value,
    y: Value,
) -> DrawnFigure | None:
    """Thin lines for the seeds, a thick one with markers for their mean."""
    drawn, ends = 0, []
    with svg.drawing(name):
        figure, axes = _figure(_HEIGHT)
        for index, method in enumerate(comparison.methods):
            colour = svg.SERIES[index % len(svg.SERIES)]
            lines = [_line(comparison.runs[method, seed].epochs, x, y) for seed in comparison.seeds]
            for line in filter(None, lines):
                axes.plot(*zip(*line, strict=True), color=colour, linewidth=0.7, alpha=0.45)
                drawn += 1
            mean = _mean_line(comparison, method, x, y)
            if mean:
                axes.plot(
                    *zip(*mean, strict=True),
                    color=colour,
                    linewidth=2,
                    dashes=_DASHES[index % len(_DASHES)] or (None, None),
                    marker=_MARKERS[index % len(_MARKERS)],
                    markersize=4,
                    label=_escape(method),
                )
                ends.append(f"{method} ends at {mean[-1][1]:.3g}")
        if not drawn:
            return None
        if y_unit == "loss":
            _spread_out_small(axes)
        axes.set_xlabel("training time, s" if x_unit == "s" else x_unit)
        axes.set_ylabel("test accuracy, %" if y_unit == "%" else y_unit)
        if x is _epoch:
            axes.locator_params(axis="x", integer=True)
        axes.set_title(title)
        _legend(figure, axes)
        spoken = f"{title}. Mean over seeds: {'; '.join(ends)}."
        text = svg.to_inline_svg(figure, name, title, spoken)
    return DrawnFigure(name, f"{title}: thin lines are seeds, thick lines their mean.", text)


def _line(epochs: list[Epoch], x: Value, y: Value) -> list[tuple[float, float]]:
    points = ((x(epoch), y(epoch)) for epoch in epochs)
    return [(across, up) for across, up in points if across is not None and up is not None]


def _mean_line(
    comparison: RecordedComparison, method: str, x: Value, y: Value
) -> list[tuple[float, float]]:
    """Mean point of each epoch that every begun seed reached; fewer seeds would make it jump."""
    begun = [run.epochs for (name, _), run in comparison.runs.items() if name == method]
    begun = [{epoch.epoch: epoch for epoch in epochs} for epochs in begun if epochs]
    if not begun:
        return []
    mean = []
    for number in sorted(set.intersection(*(set(epochs) for epochs in begun))):
        points = _line([epochs[number] for epochs in begun], x, y)
        if len(points) == len(begun):
            across, up = (math.fsum(values) / len(begun) for values in zip(*points, strict=True))
            mean.append((across, up))
    return mean


def _forest(summary: Summary) -> DrawnFigure | None:
    """Paired 95 % intervals for accuracy and time saved, one row a method."""
    others = [
        (index, method)
        for index, method in enumerate(summary.methods)
        if not method.is_reference and method.quantities["total_seconds"].effect is not None
    ]
    if not others:
        return None
    panels = (
        ("final_accuracy", "accuracy, points"),
        ("total_seconds", "training time saved, %"),
    )
    name, title = "intervals", f"Paired differences from {summary.reference}"
    with svg.drawing(name):
        figure, stacked = _panels(1.6 + 0.62 * len(others), len(panels))
        for axes, (quantity, label) in zip(stacked, panels, strict=True):
            for row, (index, method) in enumerate(others):
                effect = method.quantities[quantity].effect
                if effect is not None:
                    _interval(axes, row, effect, index)
            axes.axvline(0, color=svg.FAINT, linewidth=1)
            axes.set_yticks(range(len(others)), [_escape(method.name) for _, method in others])
            axes.set_ylim(len(others) - 0.5, -0.5)
            axes.tick_params(axis="y", length=0, labelcolor=svg.INK)
            axes.grid(visible=False, axis="y")
            axes.set_xlabel(label)
        stacked[0].set_title(f"Paired differences from {_escape(summary.reference or '')}")
        spoken = "; ".join(
            f"{method.name}, {label}: {_spoken(method.quantities[quantity].effect)}"
            for quantity, label in panels
            for _, method in others
        )
        text = svg.to_inline_svg(figure, name, title, f"{title}, mean and 95 % interval. {spoken}.")
    caption = (
        "Mean paired difference and its 95 % interval; right of zero is better. A bar that crosses "
        "the zero line shows no difference; an arrow goes on; a hollow mark has no interval."
    )
    return DrawnFigure(name, caption, text)


def _spread_out_small(axes: Axes) -> None:
    """Use a logarithmic scale where late differences would vanish on a linear one."""
    from matplotlib.ticker import LogLocator, NullFormatter

    lowest, highest = axes.dataLim.intervaly
    if lowest > 0 and highest / lowest > 4:
        axes.set_yscale("log")
        axes.yaxis.set_major_locator(LogLocator(subs=(1.0, 2.0, 5.0)))
        axes.yaxis.set_major_formatter("{x:g}")
        axes.yaxis.set_minor_formatter(NullFormatter())


def _interval(axes: Axes, row: int, effect: Estimate, index: int) -> None:
    colour = svg.SERIES[index % len(svg.SERIES)]
    marker = _MARKERS[index % len(_MARKERS)]
    filled = effect.low is not None and effect.high is not None
    if effect.low is not None and effect.high is not None:
        ends = [effect.low * 100, effect.high * 100]
        shown = [min(max(end, -_FAR), _FAR) for end in ends]
        axes.plot(shown, [row, row], color=colour, linewidth=2.5)
        for end, mark in zip(ends, ("<", ">"), strict=True):
            if abs(end) > _FAR:
                edge = math.copysign(_FAR, end)
                axes.plot([edge], [row], color=colour, marker=mark, markersize=6)
    axes.plot(
        [min(max(effect.mean * 100, -_FAR), _FAR)],
        [row],
        color=colour,
        marker=marker,
        markersize=7,
        markerfacecolor=colour if filled else "none",
    )


def _bits(summary: Summary) -> DrawnFigure | None:
    """Bits sent per component, one bar a method."""
    quantity = next(q for q in QUANTITIES if q.name == "bits_per_component")
    bars = [
        (index, method.name, found.mean)
        for index, method in enumerate(summary.methods)
        if (found := method.quantities[quantity.name].spread) is not None
    ]
    if not bars:
        return None
    unit = unit_of(quantity, summary)
    name, title = "bits", "Bits sent per gradient component"
    with svg.drawing(name):
        figure, axes = _figure(1.3 + 0.42 * len(bars))
        for row, (index, _, bits) in enumerate(bars):
            axes.barh(row, bits, height=0.6, color=svg.SERIES[index % len(svg.SERIES)])
            label = plain(bits, unit.decimals)
            axes.annotate(label, (bits, row), (4, 0), textcoords="offset points", va="center")
        axes.set_yticks(range(len(bars)), [_escape(method) for _, method, _ in bars])
        axes.set_ylim(len(bars) - 0.5, -0.5)
        axes.tick_params(axis="y", length=0, labelcolor=svg.INK)
        axes.grid(visible=False, axis="y")
        axes.margins(x=0.16)
        axes.set_xlabel("bits, headers included")
        axes.set_title(title)
        spoken = "; ".join(f"{method}: {plain(bits, 2)}" for _, method, bits in bars)
        text = svg.to_inline_svg(figure, name, title, f"{title}. {spoken}.")
    return DrawnFigure(name, f"{title}, headers included; plain float32 is 32.", text)


def _figure(height: float) -> tuple[Figure, Axes]:
    figure, axes = _panels(height, 1)
    return figure, axes[0]


def _panels(height: float, rows: int) -> tuple[Figure, list[Axes]]:
    from matplotlib.figure import Figure

    figure = Figure(figsize=(_WIDTH, height), layout="constrained")
    return figure, list(figure.subplots(rows, squeeze=False)[:, 0])


def _legend(figure: Figure, axes: Axes) -> None:
    handles, labels = axes.get_legend_handles_labels()
    if handles:
        figure.legend(handles, labels, loc="outside lower center", ncols=2, handlelength=3.2)


def _spoken(effect: Estimate | None) -> str:
    if effect is None:
        return "not compared"
    if effect.low is None or effect.high is None:
        return f"{percent(effect.mean)}, no interval"
    return f"{percent(effect.mean)}, from {percent(effect.low)} to {percent(effect.high)}"


def _escape(text: str) -> str:
    """``text`` short enough for a figure and without meaning for matplotlib.

    A "$" would begin a formula, and a leading "_" would hide the label.
    """
    text = text if len(text) <= _LABEL else f"{text[: _LABEL - 1]}…"
    shown = svg.printable(text).replace("$", r"\$")
    return f"\u200b{shown}" if shown.startswith("_") else shown
