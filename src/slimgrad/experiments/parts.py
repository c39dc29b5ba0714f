"""Parts named in a configuration: from a name and its settings to an object, checked on the way."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

from pydantic import ConfigDict, model_validator

from slimgrad.core.errors import ConfigError
from slimgrad.core.registry import Registry, unknown_name_message
from slimgrad.experiments.settings import Settings

if TYPE_CHECKING:
    from slimgrad.approx.estimators.base import GradientEstimator
    from slimgrad.approx.schedules import Schedule
    from slimgrad.comm.compressor import Compressor, Method
    from slimgrad.comm.feedback import Feedback

DEFAULT_CODEC = "fixed"


class PartConfig(Settings):
    """A registered name with its settings; ``"name:key=value,key=value"`` is the short form.

    >>> PartConfig.model_validate("nuqsgd:bits=4").settings
    {'bits': 4}
    """

    model_config = ConfigDict(extra="allow", frozen=True)
    name: str

    @model_validator(mode="before")
    @classmethod
    def _from_text(cls, value: Any) -> Any:
        return parse_part(value) if isinstance(value, str) else value

    @property
    def settings(self) -> dict[str, Any]:
        """The settings beside the name."""
        return dict(self.model_extra or {})


def parse_part(text: str) -> dict[str, Any]:
    """The short form ``name:key=value,key=value`` as a mapping; a slash separates listed numbers.

    >>> parse_part("every_nth_layer:n=4,start=2")
    {'name': 'every_nth_layer', 'n': 4, 'start': 2}
    >>> parse_part("levels:levels=0/0.5/1")
    {'name': 'levels', 'levels': (0, 0.5, 1)}
    >>> parse_part("folders:path=/images/small")
    {'name': 'folders', 'path': '/images/small'}
    >>> parse_part("nuqsgd:4")
    Traceback (most recent call last):
    slimgrad.core.errors.ConfigError: 'nuqsgd:4': write settings as name:key=value,key=value
    """
    name, _, rest = text.partition(":")
    values: dict[str, Any] = {"name": name.strip()}
    for item in filter(None, rest.split(",")):
        key, equals, value = item.partition("=")
        if not equals:
            raise ConfigError(f"{text!r}: write settings as name:key=value,key=value")
        values[key.strip()] = _scalar(value.strip())
    return values


def _scalar(text: str) -> int | float | bool | str | tuple[Any, ...]:
    if "/" in text:
        listed = tuple(_scalar(piece.strip()) for piece in text.split("/"))
        # A path has slashes too.
        return listed if all(isinstance(v, int | float) for v in listed) else text
    if text.lower() in ("true", "false"):
        return text.lower() == "true"
    for number in (int, float):
        try:
            return number(text)
        except ValueError:
            continue
    return text


def call_checked(
    kind: str, name: str, make: Callable[..., Any], settings: Mapping[str, Any], fixed: int = 0
) -> Any:
    """``make(**settings)``, with unknown, missing and wrong settings told in one line.

    Args:
        kind: what the part is, for the error.
        name: its registered name, for the error.
        make: class or function.
        settings: keyword arguments.
        fixed: leading parameters of ``make`` that are no settings; they are left unbound, and a
            callable that takes them is returned.
    """
    parameters = list(inspect.signature(make).parameters.values())[fixed:]
    for key in settings:
        if key not in (parameter.name for parameter in parameters):
            allowed = [parameter.name for parameter in parameters] or ["(none)"]
            raise ConfigError(unknown_name_message(f"setting of {kind} {name}", key, allowed))
    for parameter in parameters:
        if parameter.default is parameter.empty and parameter.name not in settings:
            raise ConfigError(
                f"{kind} {name} needs the setting {parameter.name!r}: "
                f"write {name}:{parameter.name}=VALUE, or NUMBER/NUMBER/... for a list"
            )
    if fixed:
        return lambda *leading: make(*leading, **settings)
    try:
        return make(**settings)
    except (TypeError, ValueError) as error:
        raise ConfigError(f"{kind} {name}: {error}") from None


def make_part(registry: Registry[Any], part: PartConfig) -> Any:
    """The object that ``part`` describes."""
    return call_checked(registry.kind, part.name, registry.get(part.name), part.settings)


def make_estimator(part: PartConfig) -> GradientEstimator:
    """The gradient estimator that ``part`` describes."""
    from slimgrad.approx.estimators import ESTIMATORS

    return make_part(ESTIMATORS, part)


def make_schedule(part: PartConfig) -> Schedule:
    """The schedule that ``part`` describes."""
    from slimgrad.approx.schedules import SCHEDULES

    return make_part(SCHEDULES, part)


def make_method(part: PartConfig) -> Method:
    """The quantizer, sparsifier or low-rank method that ``part`` describes."""
    from slimgrad.comm.lowrank import LOW_RANK
    from slimgrad.comm.quantizers import QUANTIZERS
    from slimgrad.comm.sparsifiers import SPARSIFIERS

    registries: tuple[Registry[Any], ...] = (QUANTIZERS, SPARSIFIERS, LOW_RANK)
    for registry in registries:
        if part.name in registry:
            return make_part(registry, part)
    allowed = [name for registry in registries for name in registry]
    kind = "quantizer, sparsifier or low-rank method"
    raise ConfigError(unknown_name_message(kind, part.name, allowed))


def make_compressor(
    method: PartConfig, codec: PartConfig | None = None, values: PartConfig | None = None
) -> Compressor:
    """The compressor of a method, a codec and a quantizer of the values that the method sends."""
    from slimgrad.comm.codecs import CODECS
    from slimgrad.comm.compressor import Compressor
    from slimgrad.comm.quantizers import QUANTIZERS

    return Compressor(
        make_method(method),
        make_part(CODECS, codec or PartConfig(name=DEFAULT_CODEC)),
        None if values is None else make_part(QUANTIZERS, values),
    )


def make_feedback(part: PartConfig) -> Feedback:
    """The feedback that ``part`` describes."""
    from slimgrad.comm.feedback import FEEDBACKS

    return make_part(FEEDBACKS, part)
