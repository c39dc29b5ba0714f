"""The quantizer a question is about, from command-line options."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated

from cyclopts import Parameter

from slimgrad.core.errors import ConfigError
from slimgrad.core.registry import unknown_name_message

if TYPE_CHECKING:
    from slimgrad.comm.quantizers.base import Norm

QUANTIZERS = ("nuqsgd", "qsgd", "qsgdinf")
LONGEST = 10**9


@dataclass(frozen=True)
class Configuration:
    """Which quantizer.

    Args:
        quantizer: Level grid: nuqsgd (exponential), qsgd or qsgdinf (uniform).
        bits: Width of a component, 2 to 8, its sign included.
        bucket_size: Components that share a norm, up to 10^9.
        norm: Norm of a bucket, l2 or linf; the quantizer's own when left out.
        ratio: Quotient of neighbouring levels of nuqsgd.
        levels: Levels of your own from 0 to 1, separated by commas, instead of a quantizer.
    """

    quantizer: str = "nuqsgd"
    bits: int = 4
    bucket_size: int = 512
    norm: str | None = None
    ratio: float | None = None
    levels: str | None = None


Choice = Annotated[Configuration, Parameter(name="*")]


@dataclass(frozen=True)
class Grid:
    """Levels and norm of a configuration that was checked.

    Attributes:
        name: how the configuration is called in an answer.
        levels: ascending, 0 and 1 included, as float64 formulas give them.
        bucket_size: components that share a norm.
        norm: "l2" or "linf".
        bits: width of a symbol with its sign.
        powers_of_half: whether the levels are 0, 2**-s, ..., 1/2, 1.
    """

    name: str
    levels: tuple[float, ...]
    bucket_size: int
    norm: Norm
    bits: int
    powers_of_half: bool

    @property
    def s(self) -> int:
        """Levels strictly between 0 and 1."""
        return len(self.levels) - 2


def grid_of(choice: Configuration) -> Grid:
    """The levels and norm that ``choice`` describes.

    Raises:
        ConfigError: an unknown name, a number out of range, options that exclude each other.

    >>> grid_of(Configuration(bits=3)).levels
    (0.0, 0.25, 0.5, 1.0)
    """
    if not 1 <= choice.bucket_size <= LONGEST:
        raise ConfigError(
            f"--bucket-size {choice.bucket_size}: must be from 1 to {LONGEST:,} components"
        )
    if choice.levels is not None:
        return _own_levels(choice, choice.levels)
    from slimgrad.comm import quantizers

    name = choice.quantizer
    if name not in QUANTIZERS:
        raise ConfigError(unknown_name_message("quantizer", name, QUANTIZERS))
    if name != "nuqsgd":
        if choice.ratio is not None:
            raise ConfigError(f"--ratio {choice.ratio:g}: only nuqsgd has a ratio, not {name}")
        kind = quantizers.QSGD if name == "qsgd" else quantizers.QSGDinf
        made = kind(bits=choice.bits, bucket_size=choice.bucket_size)
    else:
        ratio = 0.5 if choice.ratio is None else choice.ratio
        made = quantizers.NUQSGD(bits=choice.bits, bucket_size=choice.bucket_size, ratio=ratio)
    norm = _checked_norm(choice.norm) if choice.norm is not None else made.norm
    ratio = "" if choice.ratio in (None, 0.5) else f", ratio {choice.ratio:g}"
    return Grid(
        name=f"{name}, {made.bits} bits, buckets of {made.bucket_size}, {norm} norm{ratio}",
        levels=made.level_grid.levels,
        bucket_size=made.bucket_size,
        norm=norm,
        bits=made.bits,
        powers_of_half=name == "nuqsgd" and not ratio,
    )


def parse_numbers(option: str, text: str) -> tuple[float, ...]:
    """Numbers separated by commas.

    Raises:
        ConfigError: a piece is no number.

    >>> parse_numbers("--levels", "0, 0.5, 1")
    (0.0, 0.5, 1.0)
    """
    try:
        return tuple(float(piece) for piece in text.split(","))
    except ValueError:
        raise ConfigError(f"{option} {text}: write numbers separated by commas") from None


def _own_levels(choice: Configuration, text: str) -> Grid:
    from slimgrad.theory.arguments import checked_grid

    levels = checked_grid(parse_numbers("--levels", text))
    norm = _checked_norm(choice.norm or "l2")
    bits = (len(levels) - 2).bit_length() + 1
    return Grid(
        name=f"{len(levels)} levels, buckets of {choice.bucket_size}, {norm} norm",
        levels=levels,
        bucket_size=choice.bucket_size,
        norm=norm,
        bits=bits,
        powers_of_half=all(level == 0.5**k for k, level in enumerate(reversed(levels[1:]))),
    )


def _checked_norm(norm: str) -> Norm:
    if norm == "linf":
        return "linf"
    if norm == "l2":
        return "l2"
    raise ConfigError(unknown_name_message("norm", norm, ("l2", "linf")))
