"""``slimgrad train``: one network, one method, one seed."""

from __future__ import annotations

import warnings
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

from cyclopts import Parameter

from slimgrad.cli.options import given, named, part_name, with_settings
from slimgrad.cli.outfolder import RECORDS, is_main_process, own_folder
from slimgrad.cli.output import FLAG, print_json, progress
from slimgrad.core.errors import ConfigError, SlimgradWarning, WorkerError

if TYPE_CHECKING:
    from slimgrad.experiments.config import TrainConfig
    from slimgrad.experiments.records import Record
    from slimgrad.experiments.runs import Run


@Parameter(name="*")
@dataclass(frozen=True)
class TrainOptions:
    """Everything one run can be told on the command line; what is left out keeps its default.

    Attributes:
        config: TOML file with settings; options given beside it win.
        data: Data set: cifar10, digits, fashion_mnist or folders (default: digits).
        data_dir: File or folder the data set is read from.
        model: Network: cnn2, resnet14, resnet18, resnet20 or vgg19, with a width as in
            cnn2:width=32 (default: cnn2).
        epochs: Passes over the training data (default: 4).
        batch_size: Images a step, over all workers together (default: 128).
        lr: Highest learning rate (default: 0.02).
        estimator: Estimator of the weight gradient, with settings as in topk:k=4: blockmeans,
            channeltopk, exact, exactpositions, meprop, patchsampling, pooledmeans, random,
            rowsampling, samplesampling, stratifiedsampling, topk, topone, walshpairs or zero
            (default: exact).
        scale: Factor on the estimate (topone), or its standard deviation (random).
        schedule: Where the estimator is used: always, every_nth_layer:n=4,start=2,
            alternate:layers=2,steps=2 or every_nth_step:n=4 (default: always).
        quantizer: Compression of the exchanged gradients, with settings as in topk:keep=0.01. A
            quantizer (alq, amq, dithered, eden, efsign, levels, natural, nozero, nuqsgd, qsgd,
            qsgdinf, sign or terngrad), a sparsifier (atomo, randomk, threshold or topk), a
            low-rank method (powersgd or spectralatomo); none sends float32 (default: none).
        bits: Bits a component, 2 to 8, sign and zero included (default: 4).
        bucket_size: Components that share a scale (default: 512).
        codec: How quantized components become bytes: auto, context, elias_delta,
            elias_gamma, elias_omega, fixed, huffman, huffman_pairs, rans or raw; fixed packs them
            to their bits, raw spends a byte on each (default: fixed).
        values: Quantizer of what a sparsifier or a low-rank method sends; none sends float32
            (default: none).
        feedback: Adds to a gradient what earlier ones left out: error:decay=0.9 or
            dgc:momentum=0.9, whose momentum takes the place of the optimizer's where tensors are
            compressed; none for no feedback (default: none).
        workers: Worker processes (default: 1).
        seed: Decides the start, the order of the data and all rounding (default: 0).
        out: Folder to write to; a run it holds is moved to OUT/earlier-1, ... (default:
            runs/latest)
        checkpoint_every: Steps between checkpoints; 0 for none before the end.
    """

    config: Path | None = None
    data: str | None = None
    data_dir: Path | None = None
    model: str | None = None
    epochs: int | None = None
    batch_size: int | None = None
    lr: float | None = None
    estimator: str | None = None
    scale: float | None = None
    schedule: str | None = None
    quantizer: str | None = None
    bits: int | None = None
    bucket_size: int | None = None
    codec: str | None = None
    values: str | None = None
    feedback: str | None = None
    workers: int | None = None
    seed: int | None = None
    out: Path | None = None
    checkpoint_every: int | None = None


def train(
    *,
    options: TrainOptions = TrainOptions(),
    resume: Annotated[bool, FLAG] = False,
    json: Annotated[bool, FLAG] = False,
) -> int:
    """Train one network with cheaper gradients.

    Writes OUT/records.jsonl and checkpoints. Started by torchrun, it joins that launch.

    Args:
        options: see TrainOptions.
        resume: Continue from the last checkpoint in OUT, bit for bit.
        json: Print the result as JSON on stdout and nothing else there.
    """
    settings = load_run(options, resume=resume)
    records = Path(settings.out) / RECORDS
    with own_folder(Path(settings.out)):
        with progress(records, resume=settings.resume, json_output=json):
            from slimgrad.experiments import train as training  # slow to load

            training.train(settings)
        if not is_main_process():
            return 0
        run, result = _finished_run(records)
    if run.diverged:
        text = "the training loss became infinite or not a number; a smaller --lr may help"
        warnings.warn(text, SlimgradWarning, stacklevel=2)
    if json:
        print_json({"out": str(settings.out), "result": _finite(result)})
    else:
        print(f"records: {records}")
    return 0


def load_run(options: TrainOptions, *, resume: bool) -> TrainConfig:
    """The validated settings of a run.

    Raises:
        ConfigError: a setting is wrong.
    """
    settings = settings_of(options)
    if resume:
        settings["resume"] = True
    from slimgrad.experiments.config import TrainConfig

    return TrainConfig(**settings)


def settings_of(options: TrainOptions) -> dict[str, Any]:
    """The settings of the file with those of the command line over them."""
    from slimgrad.experiments.toml import read_toml

    settings = read_toml(options.config) if options.config is not None else {}
    settings = named(settings, "data", options.data, path=options.data_dir)
    settings = named(settings, "optimizer", None, lr=options.lr)
    method = settings.get("method", {})
    if isinstance(method, dict):  # the configuration refuses anything else
        method = _method(method, options)
    plain = given(
        model=options.model,
        epochs=options.epochs,
        batch_size=options.batch_size,
        workers=options.workers,
        seed=options.seed,
        out=options.out,
        checkpoint_every=options.checkpoint_every,
        method=method or None,
    )
    return {**settings, **plain}


def _method(method: dict[str, Any], options: TrainOptions) -> dict[str, Any]:
    changes = given(
        estimator=options.estimator,
        schedule=options.schedule,
        quantizer=options.quantizer,
        codec=options.codec,
        values=options.values,
        feedback=options.feedback,
    )
    method = {**method, **changes}
    for key in ("quantizer", "values", "feedback"):
        if method.get(key) == "none":
            del method[key]
    for key, needed, inner in (
        ("estimator", "--scale", {"scale": options.scale}),
        ("quantizer", "--bits", {"bits": options.bits}),
        ("quantizer", "--bucket-size", {"bucket_size": options.bucket_size}),
    ):
        if not given(**inner):
            continue
        if key not in method:
            raise ConfigError(f"{needed} is a setting of the {key}: name one with --{key}")
        method[key] = with_settings(method[key], **inner)
    if method and (changes or "name" not in method):
        method["name"] = _method_name(method)
    return method


def _method_name(method: dict[str, Any]) -> str:
    """What tables call the run: its estimator and its compression, or "exact".

    >>> _method_name({"estimator": "topone", "quantizer": "nuqsgd:bits=4"})
    'topone+nuqsgd'
    >>> _method_name({"quantizer": "topk:keep=0.01", "values": "eden", "feedback": "error"})
    'topk+eden+error'
    """
    keys = ("estimator", "quantizer", "values", "feedback")
    names = [part_name(method[key]) for key in keys if method.get(key)]
    return "+".join(name for name in names if name != "exact") or "exact"


def _finished_run(records: Path) -> tuple[Run, Record]:
    from slimgrad.experiments.records import read_records
    from slimgrad.experiments.runs import collect

    for run in collect(read_records(records)).runs.values():
        if run.result is not None:
            return run, run.result
    raise WorkerError(f"the run ended without a result; its records are in {records}")


def _finite(result: Record) -> Record:
    """The result without numbers that JSON cannot hold."""
    from slimgrad.experiments.runs import finite

    return {
        key: finite(value) if isinstance(value, float) else value for key, value in result.items()
    }
