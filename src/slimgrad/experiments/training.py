"""A run taken apart: network, optimizer, exchange, both halves of the library, and their state."""

from __future__ import annotations

import hashlib
import math
from typing import TYPE_CHECKING, Any

import torch
import torch.distributed as dist
import torch.nn.functional as F
from torch.nn.parallel import DistributedDataParallel

from slimgrad.experiments import parts
from slimgrad.experiments.config import MethodConfig, TrainConfig
from slimgrad.experiments.data.base import ImageDataset
from slimgrad.experiments.data.batches import Batches, Normalise, evaluation_batches
from slimgrad.experiments.evaluate import evaluate
from slimgrad.experiments.files import tensor_bytes
from slimgrad.experiments.group import Group, require_equal
from slimgrad.experiments.models import ImageShape, make_model
from slimgrad.experiments.optim import learning_rate, make_optimizer, set_learning_rate

if TYPE_CHECKING:
    from slimgrad.approx.convert import ApproximationHandle
    from slimgrad.comm.ddp import CompressionHandle

FULL_PRECISION_BITS = 32.0
_LAYOUTS = {"channels_last": torch.channels_last, "contiguous": torch.contiguous_format}


class Training:
    """One run on one rank, ready to take steps.

    Attributes:
        steps_per_epoch: steps of an epoch.
        steps: steps of the run.
    """

    def __init__(self, config: TrainConfig, dataset: ImageDataset, group: Group) -> None:
        self._config, self._group = config, group
        layout = _LAYOUTS[config.memory_format]
        augment = None if config.data.augment == "auto" else config.data.augment
        self._batches = Batches(
            dataset,
            config.batch_size,
            seed=config.seed,
            rank=group.rank,
            world_size=group.world_size,
            augment=augment,
            memory_format=layout,
        )
        normalise = Normalise(dataset, layout)
        self._test = evaluation_batches(dataset.test, normalise, group.rank, group.world_size)
        self.steps_per_epoch = self._batches.steps_per_epoch
        self.steps = self.steps_per_epoch * config.epochs
        shape = ImageShape.of(dataset)
        model = make_model(config.model.name, shape, config.model.settings, seed=config.seed)
        self._model = model.to(memory_format=layout)  # pyright: ignore[reportCallIssue]
        self._optimizer = make_optimizer(
            config.optimizer,
            self._model,
            without_momentum=_moved_by_feedback(self._model, config.method, group.world_size),
        )
        self._ddp = DistributedDataParallel(self._model)
        self._settle_buckets()
        self._approximation = _approximate(self._model, self._optimizer, config)
        self._compression = _compress(self._ddp, config.method, config.seed)

    def _settle_buckets(self) -> None:
        """Take one step that leaves no trace, so that DDP orders its buckets before the first.

        DDP sorts parameters into buckets anew after its first backward pass. Bucket borders
        decide how gradients are quantized and added, so a resumed run must meet the same borders
        as the one it continues.
        """
        before = {name: buffer.clone() for name, buffer in self._model.named_buffers()}
        images, labels = self._batches.batch(0, 0)
        F.cross_entropy(self._ddp(images), labels).backward()
        self._optimizer.zero_grad(set_to_none=True)
        for name, buffer in self._model.named_buffers():
            buffer.copy_(before[name])

    def step(self, step: int) -> float:
        """Take the optimizer step number ``step`` (from 0); this rank's training loss."""
        rate = learning_rate(self._config.optimizer, step, self.steps, self.steps_per_epoch)
        set_learning_rate(self._optimizer, rate)
        images, labels = self._batches.batch(*divmod(step, self.steps_per_epoch))
        loss = F.cross_entropy(self._ddp(images), labels)
        loss.backward()
        self._optimizer.step()
        self._optimizer.zero_grad(set_to_none=True)
        return loss.item()

    def evaluate(self) -> tuple[float, float]:
        """Test loss and accuracy, with the batch statistics of rank 0 on every rank."""
        for buffer in self._model.buffers():
            dist.broadcast(buffer, 0)
        return evaluate(self._model, self._test, self._group)

    def parameters_sha256(self) -> str:
        """Digest of all parameters; WorkerError when the ranks hold different ones."""
        digest = hashlib.sha256()
        for name, parameter in self._model.named_parameters():
            digest.update(name.encode())
            digest.update(tensor_bytes(parameter))
        own = torch.frombuffer(bytearray(digest.digest()), dtype=torch.uint8)
        digests = [part.numpy().tobytes() for part in self._group.gather(own)]
        require_equal(digests, "parameters")
        return digest.hexdigest()

    def traffic_and_cost(self) -> tuple[float, float]:
        """Bits sent a gradient component, and share of weight-gradient multiply-adds saved.

        The bits are not a number where there is one rank, which sends nothing.
        """
        bits = FULL_PRECISION_BITS if self._group.world_size > 1 else math.nan
        saved = 0.0
        if self._compression is not None:
            bits = float(self._compression.report().bits_per_component)
        if self._approximation is not None:
            saved = float(self._approximation.report().saved_macs_share)
        return bits, saved

    def state(self) -> dict[str, Any]:
        """Everything the next step depends on, the same on every rank."""
        names = {parameter: name for name, parameter in self._model.named_parameters()}
        own = {
            "approximation": self._approximation and self._approximation.state_dict(),
            "compression": self._compression and self._compression.state_dict(),
        }
        optimizer = {names[key]: dict(kept) for key, kept in self._optimizer.state.items()}
        return {
            "model": dict(self._model.state_dict()),
            "optimizer": optimizer,
            "ranks": self._group.gather_states(own),
        }

    @torch.no_grad()
    def load_state(self, state: dict[str, Any]) -> None:
        """Go on from what ``state`` returned."""
        self._model.load_state_dict(state["model"])
        for name, parameter in self._model.named_parameters():
            if name not in state["optimizer"]:
                continue
            kept = self._optimizer.state[parameter]
            for key, value in state["optimizer"][name].items():
                same = isinstance(value, torch.Tensor) and value.shape == parameter.shape
                # The fused optimizer needs its buffers in the memory order of the parameter.
                kept[key] = torch.empty_like(parameter).copy_(value) if same else value
        own = state["ranks"][self._group.rank]
        if self._approximation is not None:
            self._approximation.load_state_dict(own["approximation"])
        if self._compression is not None:
            self._compression.load_state_dict(own["compression"])

    def close(self) -> None:
        """Stop the exchange and leave the network as it was made."""
        if self._compression is not None:
            self._compression.close()
        if self._approximation is not None:
            self._approximation.restore()


def _approximate(
    model: torch.nn.Module, optimizer: torch.optim.Optimizer, config: TrainConfig
) -> ApproximationHandle | None:
    method = config.method
    if not method.approximates:
        return None
    from slimgrad.approx import approximate

    return approximate(
        model,
        parts.make_estimator(method.estimator),
        schedule=parts.make_schedule(method.schedule) if method.schedule else None,
        optimizer=optimizer,
        seed=config.seed,
    )


def check_feedback(model: torch.nn.Module, method: MethodConfig) -> None:
    """ConfigError where what ``method`` leaves out of the gradients of ``model`` could pile up."""
    if method.quantizer is None or method.feedback is None:
        return
    from slimgrad.comm import ddp
    from slimgrad.comm.policy import Policy

    compressor = parts.make_compressor(method.quantizer, method.codec, method.values)
    feedback = parts.make_feedback(method.feedback)
    ddp.check_feedback(feedback, compressor, Policy(), dict(model.named_parameters()))


def _moved_by_feedback(model: torch.nn.Module, method: MethodConfig, world_size: int) -> set[str]:
    """Names of the parameters whose momentum feedback applies, so that sgd must not."""
    # One worker sends nothing, and what is sent exactly has no feedback.
    if world_size == 1 or not method.has_momentum:
        return set()
    from slimgrad.comm.policy import Policy

    shapes = {name: tuple(parameter.shape) for name, parameter in model.named_parameters()}
    return {name for name, shape in shapes.items() if not Policy().is_exact(name, shape)}


def _compress(
    ddp: DistributedDataParallel, method: MethodConfig, seed: int
) -> CompressionHandle | None:
    if method.quantizer is None:
        return None
    from slimgrad.comm.ddp import compress

    compressor = parts.make_compressor(method.quantizer, method.codec, method.values)
    return compress(
        ddp,
        compressor.method,
        codec=compressor.codec,
        values=compressor.values,
        feedback=parts.make_feedback(method.feedback) if method.feedback else None,
        seed=seed,
    )
