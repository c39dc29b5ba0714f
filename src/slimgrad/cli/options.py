"""From command-line options and a TOML file to the settings of a configuration."""

from __future__ import annotations

from typing import Any

from slimgrad.core.errors import ConfigError

Settings = dict[str, Any]


def given(**options: Any) -> Settings:
    """The options that were given.

    >>> given(epochs=3, seed=None)
    {'epochs': 3}
    """
    return {name: value for name, value in options.items() if value is not None}


def with_settings(part: Any, **settings: Any) -> Any:
    """A part's description, in short or in long form, with some of its settings replaced.

    One of another form is left for the configuration to refuse.

    >>> with_settings("topone", scale=0.5)
    'topone:scale=0.5'
    >>> with_settings({"name": "nuqsgd", "bits": 8}, bits=4, bucket_size=None)
    {'name': 'nuqsgd', 'bits': 4}
    """
    replaced = given(**settings)
    if not replaced or not isinstance(part, str | dict):
        return part
    if isinstance(part, str):
        text = ",".join(f"{name}={value}" for name, value in replaced.items())
        return f"{part}{',' if ':' in part else ':'}{text}"
    return {**part, **replaced}


def named(settings: Settings, key: str, name: str | None, **inner: Any) -> Settings:
    """``settings`` with the named part ``key`` replaced or changed.

    Another name starts from that part's defaults; the same one keeps its settings. A part that is
    neither a name nor a table is left for the configuration to refuse.

    >>> named({"data": "digits"}, "data", None, path="x")
    {'data': {'name': 'digits', 'path': 'x'}}
    """
    if name is None and not given(**inner):
        return settings
    present = settings.get(key, {})
    if not isinstance(present, str | dict):
        return settings
    before = {"name": present} if isinstance(present, str) else present
    if name is not None and name != before.get("name"):
        before = {"name": name}
    return {**settings, key: {**before, **given(**inner)}}


def part_name(part: Any) -> str:
    """The name of a part described in short or long form.

    >>> part_name("nuqsgd:bits=4"), part_name({"name": "topone"})
    ('nuqsgd', 'topone')
    """
    return part.partition(":")[0] if isinstance(part, str) else str(part.get("name", ""))


def parse_seeds(text: str) -> list[int]:
    """Seeds from ``0,1,5`` or ``0-4`` or both.

    Raises:
        ConfigError: the text is neither.

    >>> parse_seeds("0-2,7")
    [0, 1, 2, 7]
    """
    seeds: list[int] = []
    for piece in text.split(","):
        first, dash, last = piece.strip().partition("-")
        if not first.isdecimal() or (dash and not last.isdecimal()):
            raise ConfigError(f"--seeds {text}: write seeds as 0,1,2 or as a range like 0-4")
        if dash and int(last) < int(first):
            raise ConfigError(f"--seeds {text}: the range {piece.strip()} runs backwards")
        if dash and int(last) - int(first) >= 1000:
            raise ConfigError(f"--seeds {text}: a range may hold at most 1000 seeds")
        seeds += range(int(first), int(last or first) + 1)
    return seeds
