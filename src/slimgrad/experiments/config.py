"""What a training run and a comparison are made of, as validated settings, from and to TOML."""

from __future__ import annotations

import hashlib
import json
from pathlib import Path
from typing import Any, Literal, TypeVar

import tomli_w
from pydantic import Field, model_validator

from slimgrad.core.errors import ConfigError
from slimgrad.core.registry import unknown_name_message
from slimgrad.experiments import parts
from slimgrad.experiments.data import DATASETS
from slimgrad.experiments.models import MODELS
from slimgrad.experiments.parts import PartConfig
from slimgrad.experiments.settings import Settings
from slimgrad.experiments.toml import read_toml

DEFAULT_RATES = {"sgd": 0.02, "adam": 0.001}
# What a run's numbers do not depend on; everything else must agree before a run is resumed.
OUTSIDE_FINGERPRINT = ("out", "resume", "checkpoint_every", "progress_every", "data")
_SettingsT = TypeVar("_SettingsT", bound=Settings)


class DataConfig(Settings):
    """A data set; its name alone is the short form.

    Attributes:
        name: digits, cifar10, folders or fashion_mnist.
        path: archive or folder; the digits need none.
        cache_dir: where decoded images are kept; ``$XDG_CACHE_HOME/slimgrad`` when not given.
        augment: random changes of training images; "auto" is what suits the data set.
    """

    name: str
    path: Path | None = None
    cache_dir: Path | None = None
    augment: Literal["auto", "none", "crop_flip"] = "auto"

    @model_validator(mode="before")
    @classmethod
    def _from_text(cls, value: Any) -> Any:
        return {"name": value} if isinstance(value, str) else value

    @model_validator(mode="after")
    def _check(self) -> DataConfig:
        loader = DATASETS.get(self.name)
        if loader.needs_path and self.path is None:
            raise ConfigError(f"data set {self.name} needs a path: {loader.path_means}")
        return self


class OptimizerConfig(Settings):
    """The optimizer and its learning rate over time; its name alone is the short form.

    Attributes:
        name: "sgd" or "adam".
        lr: highest learning rate; None is 0.02 for sgd and 0.001 for adam.
        momentum: of sgd, in [0, 1).
        weight_decay: L2 penalty, >= 0, on every parameter.
        lr_schedule: "cosine" falls to zero, "constant" stays, "one_cycle" rises and falls to zero.
        warmup_epochs: epochs of linear rise before cosine or constant.
    """

    name: Literal["sgd", "adam"] = "sgd"
    lr: float | None = Field(default=None, gt=0, allow_inf_nan=False)
    momentum: float = Field(default=0.9, ge=0, lt=1)
    weight_decay: float = Field(default=5e-4, ge=0, allow_inf_nan=False)
    lr_schedule: Literal["cosine", "constant", "one_cycle"] = "cosine"
    warmup_epochs: float = Field(default=0.0, ge=0, allow_inf_nan=False)

    @model_validator(mode="before")
    @classmethod
    def _from_text(cls, value: Any) -> Any:
        return {"name": value} if isinstance(value, str) else value

    @property
    def highest_lr(self) -> float:
        """The learning rate the schedule scales."""
        return DEFAULT_RATES[self.name] if self.lr is None else self.lr


class MethodConfig(Settings):
    """One way to compute and to send gradients.

    Attributes:
        name: what tables call it; must differ between the methods of a comparison.
        estimator: estimator of the weight gradient, and its settings.
        schedule: where the estimator is used; everywhere when not given.
        quantizer: compression of the exchanged gradients: a quantizer, a sparsifier or a low-rank
            method; None sends float32.
        codec: writes the quantized symbols as bytes; "fixed" when not given.
        values: quantizer of what a sparsifier or a low-rank method sends; None sends float32.
        feedback: adds what earlier frames left out. For the tensors that are compressed the
            momentum of "dgc" takes the place of the optimizer's.
    """

    name: str = Field(min_length=1)
    estimator: PartConfig = PartConfig(name="exact")
    schedule: PartConfig | None = None
    quantizer: PartConfig | None = None
    codec: PartConfig | None = None
    values: PartConfig | None = None
    feedback: PartConfig | None = None

    @model_validator(mode="after")
    def _check(self) -> MethodConfig:
        if self.approximates:
            estimator = parts.make_estimator(self.estimator)
            if not estimator.needs_gradient:
                raise ConfigError(
                    f"method {self.name!r}: {self.estimator.name} leaves no gradient for the "
                    "workers to reduce; name zero instead"
                )
        elif self.schedule is not None:
            raise ConfigError(
                f"method {self.name!r} has a schedule but estimates exactly everywhere: "
                "name an estimator, or leave the schedule out"
            )
        if self.schedule is not None:
            parts.make_schedule(self.schedule)
        self._check_compression()
        return self

    def _check_compression(self) -> None:
        if self.quantizer is not None:
            parts.make_compressor(self.quantizer, self.codec, self.values)
            if self.feedback is not None:
                parts.make_feedback(self.feedback)
            return
        for what, part in (
            ("a codec", self.codec),
            ("values", self.values),
            ("feedback", self.feedback),
        ):
            if part is not None:
                raise ConfigError(
                    f"method {self.name!r} has {what} but no quantizer: "
                    f"name a quantizer, or leave {part.name!r} out"
                )

    @property
    def approximates(self) -> bool:
        """Whether any weight gradient is estimated otherwise than exactly."""
        return self.estimator.name != "exact" or bool(self.estimator.settings)

    @property
    def has_momentum(self) -> bool:
        """Whether feedback applies the momentum of what it compresses."""
        return self.feedback is not None and self.feedback.name == "dgc"

    @property
    def is_exact(self) -> bool:
        """Whether this is plain data-parallel training."""
        return not self.approximates and self.quantizer is None


class RunSettings(Settings):
    """What every run of a comparison has in common.

    Attributes:
        data: data set.
        model: network, and its settings.
        epochs: passes over the training images, >= 1.
        batch_size: images a step over all workers together; a multiple of ``workers``.
        optimizer: optimizer and learning rate.
        workers: processes, each with an equal share of every batch.
        threads: threads a worker; 0 divides the processor cores among the workers.
        memory_format: order of image tensors in memory.
        checkpoint_every: steps between checkpoints; 0 writes none before the end.
        progress_every: steps between progress records.
        out: folder for records, checkpoints and logs.
        resume: continue what ``out`` holds instead of starting anew.
    """

    data: DataConfig = DataConfig(name="digits")
    model: PartConfig = PartConfig(name="cnn2")
    epochs: int = Field(default=4, ge=1)
    batch_size: int = Field(default=128, ge=1)
    optimizer: OptimizerConfig = OptimizerConfig()
    workers: int = Field(default=1, ge=1, le=1024)
    threads: int = Field(default=0, ge=0, le=1024)
    memory_format: Literal["channels_last", "contiguous"] = "channels_last"
    checkpoint_every: int = Field(default=0, ge=0)
    progress_every: int = Field(default=10, ge=1)
    out: Path = Path("runs/latest")
    resume: bool = False

    @model_validator(mode="after")
    def _check_run(self) -> RunSettings:
        parts.call_checked(
            "network", self.model.name, MODELS.get(self.model.name), self.model.settings, fixed=1
        )
        if self.batch_size % self.workers:
            raise ConfigError(
                f"batch_size = {self.batch_size}: must be a multiple of workers = {self.workers}, "
                "because every worker takes an equal share"
            )
        return self


class TrainConfig(RunSettings):
    """One run: one method with one seed.

    >>> TrainConfig(epochs=0)
    Traceback (most recent call last):
    slimgrad.core.errors.ConfigError: epochs = 0: must be greater than or equal to 1
    """

    method: MethodConfig = MethodConfig(name="exact")
    seed: int = Field(default=0, ge=0, lt=2**62)

    @model_validator(mode="after")
    def _check_momentum(self) -> TrainConfig:
        if self.method.has_momentum and self.optimizer.name != "sgd":
            raise ConfigError(
                f"feedback dgc is the momentum of sgd, the optimizer is {self.optimizer.name}: "
                "choose sgd, or feedback error"
            )
        return self

    def fingerprint(self, dataset_checksum: str) -> str:
        """Digest of everything the run's numbers depend on, the data's content included."""
        kept = self.model_dump(mode="json", exclude=set(OUTSIDE_FINGERPRINT))
        text = json.dumps([kept, self.data.augment, dataset_checksum], sort_keys=True)
        return hashlib.sha256(text.encode()).hexdigest()


class CompareConfig(RunSettings):
    """Several methods over several paired seeds: same start and same data order for each seed."""

    methods: list[MethodConfig] = Field(default=[MethodConfig(name="exact")], min_length=1)
    seeds: list[int] = Field(default=[0, 1, 2], min_length=1)

    @model_validator(mode="after")
    def _check_comparison(self) -> CompareConfig:
        names = [method.name for method in self.methods]
        for kind, values in (("method", names), ("seed", self.seeds)):
            twice = [value for index, value in enumerate(values) if value in values[:index]]
            if twice:
                raise ConfigError(f"{kind} {twice[0]!r} is given twice; each must be given once")
        for seed in self.seeds:
            self.run(self.methods[0], seed)
        for method in self.methods:
            self.run(method, self.seeds[0])
        return self

    def run(self, method: MethodConfig, seed: int) -> TrainConfig:
        """The configuration of one run of the comparison."""
        shared = {name: getattr(self, name) for name in RunSettings.model_fields}
        return TrainConfig(**shared, method=method, seed=seed)


def from_toml(path: Path, kind: type[_SettingsT], **changes: Any) -> _SettingsT:
    """The configuration of a TOML file, with some settings replaced.

    Raises:
        ConfigError: the file cannot be read, is no TOML, or holds a wrong setting.
    """
    return kind(**(read_toml(path) | changes))


def to_toml(config: Settings) -> str:
    """The configuration as TOML that ``from_toml`` reads back to an equal one."""
    return tomli_w.dumps(config.model_dump(mode="json", exclude_none=True))


def recipe_path(name: str) -> Path:
    """The TOML file of a built-in recipe.

    >>> recipe_path("digits").name
    'digits.toml'
    """
    folder = Path(__file__).resolve().parent.parent / "recipes"
    names = sorted(file.stem for file in folder.glob("*.toml"))
    if name not in names:
        raise ConfigError(unknown_name_message("recipe", name, names))
    return folder / f"{name}.toml"
