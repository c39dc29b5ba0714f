"""Names for interchangeable parts, with errors that help."""

from __future__ import annotations

import difflib
from collections.abc import Callable, Iterable, Iterator
from typing import Generic, TypeVar

from slimgrad.core.errors import ConfigError

T = TypeVar("T")


def unknown_name_message(kind: str, name: object, allowed: Iterable[str]) -> str:
    """One line that names the value, the nearest allowed name, and all allowed names.

    >>> unknown_name_message("codec", "fixd", ["fixed", "raw"])
    "unknown codec 'fixd': did you mean 'fixed'? allowed: fixed, raw"
    """
    names = sorted(allowed)
    lowered = {candidate.lower(): candidate for candidate in names}
    near = difflib.get_close_matches(str(name).lower(), lowered, n=1, cutoff=0.5)
    hint = f"did you mean '{lowered[near[0]]}'? " if near else ""
    return f"unknown {kind} {name!r}: {hint}allowed: {', '.join(names)}"


class Registry(Generic[T]):
    """A mapping from names to parts of one kind.

    >>> shapes = Registry[type]("shape")
    >>> _ = shapes.add("square")(int)
    >>> shapes.get("square")
    <class 'int'>
    >>> shapes.get("sqare")
    Traceback (most recent call last):
    slimgrad.core.errors.ConfigError: unknown shape 'sqare': did you mean 'square'? allowed: square
    """

    def __init__(self, kind: str) -> None:
        self.kind = kind
        self._parts: dict[str, T] = {}

    def add(self, name: str) -> Callable[[T], T]:
        """Decorator that files the decorated part under ``name``; a name is never reused."""

        def file_part(part: T) -> T:
            if name in self._parts:
                raise ConfigError(f"{self.kind} {name!r} is already registered")
            self._parts[name] = part
            return part

        return file_part

    def get(self, name: str) -> T:
        """The part called ``name``; ConfigError with the nearest name when there is none."""
        try:
            return self._parts[name]
        except (KeyError, TypeError):
            raise ConfigError(unknown_name_message(self.kind, name, self._parts)) from None

    def __iter__(self) -> Iterator[str]:
        return iter(sorted(self._parts))

    def __contains__(self, name: object) -> bool:
        return name in self._parts

    def __len__(self) -> int:
        return len(self._parts)
