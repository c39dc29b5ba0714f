"""Reads TOML files of settings."""

from __future__ import annotations

import tomllib
from pathlib import Path
from typing import Any

from slimgrad.core.errors import ConfigError


def read_toml(path: Path) -> dict[str, Any]:
    """The settings of a TOML file.

    Raises:
        ConfigError: the file cannot be read, or is no TOML.
    """
    try:
        return tomllib.loads(path.read_text(encoding="utf-8"))
    except (OSError, UnicodeDecodeError) as error:
        reason = error.strerror if isinstance(error, OSError) else error
        raise ConfigError(f"cannot read the configuration {path}: {reason}") from None
    except tomllib.TOMLDecodeError as error:
        raise ConfigError(f"{path} is no valid TOML: {error}") from None
