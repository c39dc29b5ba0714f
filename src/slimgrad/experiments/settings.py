"""Base of all configuration models: immutable, strict, with errors of one clear line."""

from __future__ import annotations

import re
from typing import Any, Self

from pydantic import BaseModel, ConfigDict, ValidationError
from pydantic_core import ErrorDetails

from slimgrad.core.errors import ConfigError
from slimgrad.core.registry import unknown_name_message


class Settings(BaseModel):
    """A group of settings; a wrong value raises ConfigError with one line.

    >>> class Speed(Settings):
    ...     knots: int
    >>> Speed(knot=3)
    Traceback (most recent call last):
    slimgrad.core.errors.ConfigError: unknown setting 'knot': did you mean 'knots'? allowed: knots
    """

    model_config = ConfigDict(extra="forbid", frozen=True, validate_default=True)

    def __init__(self, **values: Any) -> None:
        try:
            super().__init__(**values)
        except ValidationError as error:
            raise ConfigError(_one_line(type(self), error)) from None

    @classmethod
    def model_validate(cls, obj: Any, **options: Any) -> Self:
        """The settings of a mapping; a wrong value raises ConfigError."""
        try:
            return super().model_validate(obj, **options)
        except ValidationError as error:
            raise ConfigError(_one_line(cls, error)) from None

    @classmethod
    def model_validate_json(cls, json_data: str | bytes | bytearray, **options: Any) -> Self:
        """The settings of a JSON text; a wrong value raises ConfigError."""
        try:
            return super().model_validate_json(json_data, **options)
        except ValidationError as error:
            raise ConfigError(_one_line(cls, error)) from None

    def replace(self, **changes: Any) -> Self:
        """A copy with some settings changed, validated again."""
        values = {name: getattr(self, name) for name in self.model_fields_set}
        return type(self)(**(values | changes))


def _one_line(model: type[BaseModel], error: ValidationError) -> str:
    problems = error.errors(include_url=False)
    # A misspelt name often makes the right one "missing": the misspelling is the cause.
    misspelt = [problem for problem in problems if problem["type"] == "extra_forbidden"]
    problems = misspelt or problems
    more = f" (and {len(problems) - 1} more)" if len(problems) > 1 else ""
    return _describe(model, problems[0]) + more


def _describe(model: type[BaseModel], problem: ErrorDetails) -> str:
    place = "".join(
        f"[{part}]" if isinstance(part, int) else f".{part}" for part in problem["loc"]
    ).lstrip(".")
    kind = problem["type"]
    if kind == "extra_forbidden":
        return unknown_name_message("setting", place, model.model_fields)
    if kind == "missing":
        return f"the setting {place} is required"
    context = problem.get("ctx", {})
    if kind == "value_error":
        return f"{place}: {context['error']}" if place else str(context["error"])
    value = problem["input"]
    if kind == "literal_error":
        allowed = re.findall(r"'([^']*)'", context["expected"])
        return unknown_name_message(place, value, allowed)
    if place and kind in ("model_type", "dict_type"):
        return f"{place} = {value!r}: must be a table of settings"
    if kind == "too_short":
        return f"{place} = {value!r}: must not be empty"
    rule = problem["msg"].removeprefix("Input should be ")
    return f"{place or 'the configuration'} = {value!r}: must be {rule}"
