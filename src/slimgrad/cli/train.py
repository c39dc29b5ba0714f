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
        data: Data set: digits, cifar10, folders or fashion_mnist.
        data_dir: File or folder the data set is read from.
        model: Network: cnn2, resnet14, resnet20, ...
        epochs: Passes over the training data.
        batch_size: Images a step, over all workers together.
        lr: Highest learning rate.
        estimator: Estimator of the weight gradient: exact, zero, skip, random, topone.
        scale: Factor on the estimate (topone), or its standard deviation (random).
        schedule: Where the estimator is used, such as every_nth_layer:n=4,start=2.
        quantizer: Compression of the exchanged gradients: none, nuqsgd, qsgd, qsgdinf.
        bits: Bits a component, sign and zero included.
        bucket_size: Components that share a scale.
        codec: How quantized components become bytes: raw, fixed.
        workers: Worker processes.
        seed: Decides the start, the order of the data and all rounding.
        out: Folder to write to; a run it holds is moved to OUT/earlier-1, ...
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
    changes = given(estimator=options.estimator, schedule=options.schedule, codec=options.codec)
    method = {**method, **changes}
    if options.quantizer is not None:
        method["quantizer"] = options.quantizer
    if method.get("quantizer") == "none":
        del method["quantizer"]
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
    if method and (changes or options.quantizer is not None or "name" not in method):
        method["name"] = _method_name(method)
    return method


def _method_name(method: dict[str, Any]) -> str:
    """What tables call the run: its estimator and quantizer, or "exact".

    >>> _method_name({"estimator": "topone", "quantizer": "nuqsgd:bits=4"})
    'topone+nuqsgd'
    """
    names = [part_name(method[key]) for key in ("estimator", "quantizer") if method.get(key)]
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
