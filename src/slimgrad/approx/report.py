"""What a model's approximation did so far, as plain records and as a table."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal


@dataclass(frozen=True)
class LayerReport:
    """One convolution or linear layer.

    Attributes:
        name: dotted name in the model.
        kind: "conv2d", "linear", "conv1d" and so on.
        number: place among the layers chosen for approximation, from 1; 0 for the others.
        status: "approximate" where the schedule selects it in some step, else "exact".
        reason: the estimator of an approximate layer; why the weight gradient is exact otherwise.
        share: share of all exact weight-gradient multiply-adds counted so far.
        exact_macs: multiply-adds that exact weight gradients would have cost so far.
        spent_macs: multiply-adds spent on weight gradients so far.
        counted: False for a layer whose multiply-adds could not be counted.
    """

    name: str
    kind: str
    number: int
    status: Literal["approximate", "exact"]
    reason: str
    share: float
    exact_macs: int
    spent_macs: int
    counted: bool


@dataclass(frozen=True)
class ApproximationReport:
    """All convolution and linear layers of a model; ``str()`` prints a table.

    Multiply-adds are counted in training-mode forward passes with gradients enabled, since every
    such pass is followed by one weight gradient. Weights used without calling such a layer
    (attention projections, embeddings) are not among them. A pass that a checkpoint repeats counts
    once, unless compiled code inside the checkpoint runs it.

    Attributes:
        step: optimizer steps done.
        layers: one row for each layer, in module order.
    """

    step: int
    layers: tuple[LayerReport, ...]

    @property
    def exact_macs(self) -> int:
        """Multiply-adds that exact weight gradients would have cost so far."""
        return sum(layer.exact_macs for layer in self.layers)

    @property
    def spent_macs(self) -> int:
        """Multiply-adds spent on weight gradients so far."""
        return sum(layer.spent_macs for layer in self.layers)

    @property
    def saved_macs_share(self) -> float:
        """Share of the exact weight-gradient multiply-adds that was saved; 0.0 before any."""
        return _share(self.exact_macs - self.spent_macs, self.exact_macs)

    def __str__(self) -> str:
        header = ("layer", "kind", "no.", "share", "saved", "weight gradient")
        rows = [header, *(_cells(layer) for layer in self.layers)]
        widths = [max(len(row[i]) for row in rows) for i in range(len(header))]
        lines = []
        for row in rows:
            cells = [
                cell.ljust(width) if i in (0, 1, 5) else cell.rjust(width)
                for i, (cell, width) in enumerate(zip(row, widths, strict=True))
            ]
            lines.append("  ".join(cells).rstrip())
        lines.append(
            f"step {self.step}: {self.saved_macs_share:.1%} of {self.exact_macs:,} "
            "weight-gradient multiply-adds saved"
        )
        return "\n".join(lines)


def _share(part: int, whole: int) -> float:
    return part / whole if whole else 0.0


def _cells(layer: LayerReport) -> tuple[str, ...]:
    saved = _share(layer.exact_macs - layer.spent_macs, layer.exact_macs)
    gradient = layer.reason if layer.status == "approximate" else f"exact: {layer.reason}"
    return (
        layer.name or "(model)",
        layer.kind,
        str(layer.number) if layer.number else "",
        f"{layer.share:.1%}" if layer.counted else "",
        f"{saved:.1%}" if layer.counted else "",
        gradient if layer.counted else f"{gradient} (not counted)",
    )
