"""``tune()``: the same gradients in less time, by measurement."""

from __future__ import annotations

import copy
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Literal

import torch
from torch import nn

from slimgrad.approx.choice import bare_model, candidates
from slimgrad.approx.convert import approximate
from slimgrad.approx.estimators.base import LayerGeometry
from slimgrad.approx.estimators.exact import Exact, exact_weight_grad
from slimgrad.approx.estimators.exactpositions import ExactPositions
from slimgrad.approx.layers import TUNED, layer_geometry, padded_input
from slimgrad.core.errors import ConfigError

Layout = Literal["contiguous", "channels_last"]
LossOf = Callable[[nn.Module, Any], torch.Tensor]
_FORMATS: dict[Layout, torch.memory_format] = {
    "contiguous": torch.contiguous_format,
    "channels_last": torch.channels_last,
}
# A layer must gain this much on itself to be worth another order of summation.
_WORTH = 0.95


@dataclass(frozen=True)
class LayerTiming:
    """Seconds of one weight gradient of a layer, least of the repeats, in the chosen layout.

    Attributes:
        name: dotted name.
        stock_seconds: of torch's operation.
        positions_seconds: of the position kernel.
        chosen: whether the layer uses the position kernel from now on.
    """

    name: str
    stock_seconds: float
    positions_seconds: float
    chosen: bool


@dataclass(frozen=True)
class TuneReport:
    """What ``tune`` measured and chose; ``str()`` prints it.

    Attributes:
        memory_format: layout the model is in now.
        stock_step_seconds: forward and backward pass of the stock model in each layout, least of
            the repeats.
        tuned_step_seconds: the same for the tuned model.
        layers: every two-dimensional convolution that could be timed.
    """

    memory_format: Layout
    stock_step_seconds: dict[str, float]
    tuned_step_seconds: float
    layers: tuple[LayerTiming, ...]

    @property
    def gain(self) -> float:
        """Time of the stock model in its better layout over that of the tuned one."""
        return min(self.stock_step_seconds.values()) / self.tuned_step_seconds

    @property
    def chosen(self) -> tuple[str, ...]:
        """Names of the layers that use the position kernel."""
        return tuple(layer.name for layer in self.layers if layer.chosen)

    def __str__(self) -> str:
        lines = [
            f"{layout:>14}: {1e3 * seconds:9.2f} ms a forward and backward pass"
            for layout, seconds in self.stock_step_seconds.items()
        ]
        lines.append(
            f"{'tuned':>14}: {1e3 * self.tuned_step_seconds:9.2f} ms, {self.memory_format}"
        )
        lines.append(f"gain over the better layout: {self.gain:.3f}x")
        for layer in self.layers:
            ratio = layer.positions_seconds / layer.stock_seconds
            what = "position kernel" if layer.chosen else "stock"
            lines.append(f"  {layer.name}: {what} (position kernel takes {ratio:.2f} of stock)")
        return "\n".join(lines)


def tune(
    model: nn.Module, sample_batch: Any, *, loss: LossOf | None = None, repeats: int = 5
) -> TuneReport:
    """Choose the memory layout, and the quicker exact weight gradient for each layer.

    Times a forward and backward pass of ``model`` in both layouts and, layer by layer, torch's
    weight gradient against the position kernel, all on a copy. Then ``model`` is moved to the
    better layout, and the layers that gain compute their weight gradient by the position kernel
    from now on, also in the steps that a later :func:`slimgrad.approximate` leaves exact.

    Guarantee: gradients stay exact, up to the rounding of float32 sums in another order.

    Give batches to the model in the chosen layout too:
    ``images.to(memory_format=torch.channels_last)``.

    Args:
        model: on the CPU, in training mode, not approximated.
        sample_batch: what ``loss`` takes; without it a tensor, or a tuple whose first member is
            one, that the model takes.
        loss: loss of (model, batch), a scalar; default the mean square of the outputs.
        repeats: timings of each piece, of which the least counts, >= 1.

    Returns:
        What was measured and chosen.

    Raises:
        ConfigError: an argument of the wrong form, or a model that is approximated already.

    >>> model = nn.Sequential(nn.Conv2d(3, 4, 3), nn.ReLU())
    >>> report = tune(model, torch.randn(2, 3, 8, 8), repeats=1)
    >>> report.memory_format in ("contiguous", "channels_last")
    True
    """
    if not isinstance(model, nn.Module):
        raise ConfigError(f"model must be a torch.nn.Module, got {model!r}")
    if not model.training:
        raise ConfigError("the model is in evaluation mode; call model.train() before tune()")
    if loss is not None and not callable(loss):
        raise ConfigError(f"loss must be a function of (model, batch), got {loss!r}")
    if not isinstance(repeats, int) or isinstance(repeats, bool) or repeats < 1:
        raise ConfigError(f"repeats must be an integer >= 1, got {repeats!r}")
    loss = _mean_square if loss is None else _checked(loss)
    bare = bare_model(model)
    names = [
        c.name for c in candidates(bare, None) if not c.reason and isinstance(c.module, nn.Conv2d)
    ]
    trials: dict[Layout, _Trial] = {
        each: _trial(bare, each, sample_batch, loss, names, repeats) for each in _FORMATS
    }
    layout: Layout = min(trials, key=lambda each: trials[each].predicted)
    layers = trials[layout].layers
    chosen = [layer.name for layer in layers if layer.chosen]
    stock: dict[str, float] = {each: trial.step_seconds for each, trial in trials.items()}
    tuned = stock[layout]
    if chosen:
        trial = _tuned(copy.deepcopy(bare), layout, chosen)
        tuned = _step_seconds(trial, layout, sample_batch, loss, repeats)
    if tuned > stock[layout]:
        layers = [LayerTiming(t.name, t.stock_seconds, t.positions_seconds, False) for t in layers]
        chosen, tuned = [], stock[layout]
    _tuned(bare, layout, chosen)
    return TuneReport(layout, stock, tuned, tuple(layers))


@dataclass(frozen=True)
class _Trial:
    step_seconds: float
    layers: list[LayerTiming]

    @property
    def predicted(self) -> float:
        gains = (t.stock_seconds - t.positions_seconds for t in self.layers if t.chosen)
        return self.step_seconds - sum(gains)


def _trial(
    model: nn.Module, layout: Layout, batch: Any, loss: LossOf, names: list[str], repeats: int
) -> _Trial:
    work = _lay_out(copy.deepcopy(model), layout)
    modules = dict(work.named_modules())
    kept: dict[str, tuple[torch.Tensor, torch.Tensor]] = {}
    hooks = [modules[name].register_forward_hook(_keeper(name, kept)) for name in names]
    loss(work, _in_layout(batch, layout)).backward()
    for hook in hooks:
        hook.remove()
    step = _step_seconds(work, layout, batch, loss, repeats)
    timings = []
    for name in names:
        if name not in kept:
            continue
        (x, grad_out), layer = kept[name], modules[name]
        assert isinstance(layer, nn.Conv2d)
        timings.append(_time_layer(name, x, grad_out, layer_geometry(layer), repeats))
    return _Trial(step, timings)


def _keeper(name: str, kept: dict[str, tuple[torch.Tensor, torch.Tensor]]) -> Any:
    def keep(layer: nn.Conv2d, inputs: tuple[Any, ...], output: torch.Tensor) -> None:
        x = inputs[0].detach()
        if x.dim() != 4 or not output.requires_grad:
            return
        x = padded_input(layer, x)
        output.register_hook(lambda grad: kept.__setitem__(name, (x, grad.detach())))

    return keep


def _time_layer(
    name: str, x: torch.Tensor, grad_out: torch.Tensor, geometry: LayerGeometry, repeats: int
) -> LayerTiming:
    positions = ExactPositions()
    stock_seconds = positions_seconds = float("inf")
    for _ in range(repeats + 1):  # the first warms up
        start = time.perf_counter()
        exact_weight_grad(x, grad_out, geometry)
        middle = time.perf_counter()
        positions.weight_grad(x, grad_out, geometry, 0)
        end = time.perf_counter()
        stock_seconds = min(stock_seconds, middle - start)
        positions_seconds = min(positions_seconds, end - middle)
    chosen = positions_seconds < _WORTH * stock_seconds
    return LayerTiming(name, stock_seconds, positions_seconds, chosen)


def _step_seconds(
    model: nn.Module, layout: Layout, batch: Any, loss: LossOf, repeats: int
) -> float:
    batch = _in_layout(batch, layout)
    least = float("inf")
    for _ in range(repeats + 1):
        model.zero_grad(set_to_none=True)
        start = time.perf_counter()
        loss(model, batch).backward()
        least = min(least, time.perf_counter() - start)
    model.zero_grad(set_to_none=True)
    return least


def _tuned(model: nn.Module, layout: Layout, chosen: list[str]) -> nn.Module:
    _lay_out(model, layout)
    for name, module in model.named_modules():
        module.__dict__.pop(TUNED, None)
        if name in chosen:
            module.__dict__[TUNED] = True
    if chosen:
        # The handle is let go: whoever approximates the model later takes the layers over.
        approximate(model, Exact(), where=chosen)
    return model


def _lay_out(model: nn.Module, layout: Layout) -> nn.Module:
    return model.to(memory_format=_FORMATS[layout])  # pyright: ignore[reportCallIssue]


def _in_layout(batch: Any, layout: Layout) -> Any:
    if isinstance(batch, torch.Tensor):
        return batch.to(memory_format=_FORMATS[layout]) if batch.dim() == 4 else batch
    if isinstance(batch, tuple | list):
        return type(batch)(_in_layout(member, layout) for member in batch)
    return batch


def _checked(loss: LossOf) -> LossOf:
    def scalar(model: nn.Module, batch: Any) -> torch.Tensor:
        value = loss(model, batch)
        if not isinstance(value, torch.Tensor) or value.numel() != 1:
            raise ConfigError(
                f"loss must return a scalar tensor, got {getattr(value, 'shape', value)!r}"
            )
        return value

    return scalar


def _mean_square(model: nn.Module, batch: Any) -> torch.Tensor:
    images = batch[0] if isinstance(batch, tuple | list) else batch
    if not isinstance(images, torch.Tensor):
        raise ConfigError(
            f"sample_batch must be a tensor or begin with one, got {type(images).__name__}; "
            "or give loss=, a function of (model, batch)"
        )
    output = model(images)
    if not isinstance(output, torch.Tensor):
        raise ConfigError(
            f"the model returns {type(output).__name__}; give loss=, a function of (model, batch)"
        )
    return output.float().square().mean()
