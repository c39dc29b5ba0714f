"""``slimgrad probe``: hold estimators and compression to what they claim."""

from __future__ import annotations

import dataclasses
import math
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

from cyclopts import App

from slimgrad.cli.output import FLAG, print_aligned, print_json
from slimgrad.core.errors import DataError

if TYPE_CHECKING:
    import torch
    from torch import nn

    from slimgrad.diagnose import CompressionProbeReport, GradientProbeReport

probe = App(
    name="probe",
    help="Measure on a network what estimators and compression do, beside what they claim.",
    help_format="markdown",
    result_action="return_value",
)


@probe.command
def gradient(
    *,
    estimators: str = "topone zero",
    data: str = "digits",
    data_dir: Path | None = None,
    model: str = "cnn2",
    batches: int = 64,
    batch_size: int = 64,
    train_steps: int = 0,
    tolerance: float = 0.1,
    seed: int = 0,
    json: Annotated[bool, FLAG] = False,
) -> int:
    """Compare estimated with exact weight gradients over many batches of a fixed network.

    For each layer and estimator: the persistent difference (bias) with its 95 % interval, cosine
    and norm ratio to the exact gradient, variance added by the estimator's own draws as a share of
    the mini-batch noise, and the noise multiplier. A network with batch normalisation is measured
    with and without it. Exit code 1 when an estimator that claims to be unbiased is shown to be
    biased.

    Args:
        estimators: Estimators, separated by spaces, such as "topone random:scale=0.01".
        data: Data set.
        data_dir: File or folder the data set is read from.
        model: Network, with a width as in cnn2:width=32.
        batches: Batches to average over, at least 16.
        batch_size: Images a batch.
        train_steps: Exact training steps before the measurement; 0 for an untrained network.
        tolerance: Largest relative bias under which an estimator may be called unbiased.
        seed: Decides the start, the order of the data and all draws.
        json: Print the result as JSON on stdout and nothing else there.
    """
    from slimgrad.diagnose import has_batch_norm, probe_gradient, without_batch_norm
    from slimgrad.experiments.parts import PartConfig, make_estimator
    from slimgrad.experiments.probing import Subject

    chosen = [make_estimator(PartConfig.model_validate(text)) for text in estimators.split()]
    subject = Subject(data, data_dir, model, batch_size, seed)
    networks = {"": subject.network}
    if has_batch_norm(subject.network):
        networks = {
            "with batch normalisation": subject.network,
            "without batch normalisation": without_batch_norm(subject.network),
        }
    reports = {}
    for label, network in networks.items():
        subject.train(network, train_steps)
        given = subject.batches(first=train_steps, count=batches)
        reports[label] = probe_gradient(
            network, given, subject.loss, chosen, tolerance=tolerance, seed=seed
        )
    state = f"after {train_steps} exact steps" if train_steps else "untrained"
    if json:
        print_json({label or "network": _plain(report) for label, report in reports.items()})
    else:
        for label, report in reports.items():
            _show_gradient(f"{model}, {state}{', ' if label else ''}{label}", report)
    defects = [row for report in reports.values() for row in report.rows if row.is_defect]
    return 1 if defects else 0


@probe.command
def compression(
    *,
    quantizer: str = "nuqsgd:bits=4",
    codec: str = "fixed",
    gradients: Path | None = None,
    data: str = "digits",
    data_dir: Path | None = None,
    model: str = "cnn2",
    batch_size: int = 64,
    train_steps: int = 0,
    repeats: int = 16,
    min_numel: int = 1024,
    seed: int = 0,
    json: Annotated[bool, FLAG] = False,
) -> int:
    """Compress a gradient again and again; measured variance beside the bound, bits beside entropy.

    One row a parameter. The gradient is one batch of a built-in network, or your own: save
    {name: parameter.grad} with torch.save and name the file. Exit code 1 when a measured variance
    is above its bound, which only a mistake explains.

    Args:
        quantizer: Quantizer, sparsifier or low-rank method with settings, such as
            nuqsgd:bits=4,bucket_size=512.
        codec: Codec of the symbols.
        gradients: File of tensors by name, written by torch.save, instead of a network.
        data: Data set.
        data_dir: File or folder the data set is read from.
        model: Network, with a width as in cnn2:width=32.
        batch_size: Images a batch.
        train_steps: Exact training steps before the measurement.
        repeats: Independent roundings of every tensor.
        min_numel: Smaller tensors go exact, and are not shown.
        seed: Decides the start, the data and all rounding.
        json: Print the result as JSON on stdout and nothing else there.
    """
    from slimgrad.comm.policy import Policy
    from slimgrad.diagnose import probe_compression
    from slimgrad.experiments.parts import PartConfig, make_compressor
    from slimgrad.experiments.probing import Subject

    compressor = make_compressor(
        PartConfig.model_validate(quantizer), PartConfig.model_validate(codec)
    )
    given: nn.Module | dict[str, torch.Tensor]
    if gradients is not None:
        given = saved_gradients(gradients)
    else:
        subject = Subject(data, data_dir, model, batch_size, seed)
        subject.train(subject.network, train_steps)
        (batch,) = subject.batches(first=train_steps, count=1)
        subject.loss(subject.network, batch).backward()
        given = subject.network
    report = probe_compression(
        given, compressor, policy=Policy(min_numel=min_numel), repeats=repeats, seed=seed
    )
    if json:
        print_json({**_plain(report), "defects": [row.name for row in report.defects]})
    else:
        _show_compression(report)
    return 1 if report.defects else 0


def saved_gradients(path: Path) -> dict[str, torch.Tensor]:
    """Tensors by name from a file of ``torch.save``.

    Raises:
        DataError: the file holds something else.
    """
    import pickle

    import torch

    try:
        loaded = torch.load(path, map_location="cpu", weights_only=True)
    except (pickle.UnpicklingError, RuntimeError, EOFError) as error:
        raise DataError(f"{path} is no file of torch.save with tensors alone: {error}") from None
    named = loaded if isinstance(loaded, dict) else {}
    floating = {
        str(name): value
        for name, value in named.items()
        if isinstance(value, torch.Tensor) and value.is_floating_point()
    }
    if not floating or len(floating) < len(named):
        raise DataError(f"{path} must hold a mapping from names to floating-point tensors")
    return floating


def _plain(report: GradientProbeReport | CompressionProbeReport) -> dict[str, Any]:
    def finite(value: Any) -> Any:
        return None if isinstance(value, float) and not math.isfinite(value) else value

    plain = dataclasses.asdict(report)
    plain["rows"] = [{key: finite(value) for key, value in row.items()} for row in plain["rows"]]
    return plain


def _show_gradient(title: str, report: GradientProbeReport) -> None:
    print(f"{title}: {report.batches} batches")
    rows = [
        (
            row.layer,
            row.estimator,
            f"{row.relative_bias:.3f}",
            f"{row.relative_bias_low:.3f} to {row.relative_bias_high:.3f}",
            f"{row.cosine:.3f}",
            f"{row.norm_ratio:.3f}",
            f"{row.added_variance:.3f}",
            f"{row.noise_multiplier:.2f}",
            row.verdict + (" (CLAIMS UNBIASED)" if row.is_defect else ""),
        )
        for row in report.rows
    ]
    heading = (
        "layer",
        "estimator",
        "bias",
        "95 % interval",
        "cosine",
        "norm",
        "added var",
        "noise x",
        "verdict",
    )
    print_aligned(heading, rows, left=2)
    print(
        "bias and norm are relative to the size of a batch's exact gradient, its noise included;\n"
        f"'unbiased': no bias above {report.tolerance:.0%} is left possible; 'open': more batches "
        "are needed\n"
    )


def _show_compression(report: CompressionProbeReport) -> None:
    print(f"{report.method}: {report.repeats} roundings of each tensor")
    rows = [
        (
            row.name,
            f"{row.n:,}",
            f"{row.measured_variance:.4f} +- {row.standard_error:.4f}",
            _number(row.variance_bound, 4),
            f"{row.measured_bits:.3f}",
            _number(row.entropy_bits, 3),
            "ABOVE THE BOUND" if row.is_defect else "",
        )
        for row in report.rows
        if not row.exact
    ]
    if rows:
        heading = ("tensor", "components", "variance", "bound", "bits", "entropy", "")
        print_aligned(heading, rows, left=1)
    exact = [row for row in report.rows if row.exact]
    print(f"{len(exact)} of {len(report.rows)} tensors go exact; in all ", end="")
    print(f"{report.measured_bits:.3f} bits a component, everything included")


def _number(value: float, digits: int) -> str:
    return "-" if math.isnan(value) else f"{value:.{digits}f}"
