"""Components of a gradient, sampled or read, that a question is asked about."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from slimgrad.core.errors import ConfigError

if TYPE_CHECKING:
    import numpy as np

SAMPLED = ("gauss", "laplace")
MOST_COMPONENTS = 2**20


def components(data: str, bucket_size: int) -> tuple[np.ndarray, str]:
    """Whole buckets of float64 components, and where they come from in words.

    Args:
        data: "gauss", "laplace", or a file: .npy, or .pt with one tensor or a dict of tensors, each
            cut into buckets of its own.
        bucket_size: at most 2**20. Of more components, buckets spread over them are taken.

    Raises:
        ConfigError: a bucket too long, or a file that holds no usable vector.

    >>> components("gauss", 4096)[0].shape
    (262144,)
    """
    if bucket_size > MOST_COMPONENTS:
        raise ConfigError(
            f"--bucket-size {bucket_size}: with --data a bucket may have at most "
            f"{MOST_COMPONENTS:,} components"
        )
    if data in SAMPLED:
        return _sampled(data, bucket_size)
    return _read(Path(data), bucket_size)


def symbol_probabilities(
    vector: np.ndarray, levels: tuple[float, ...], bucket_size: int, norm: str
) -> np.ndarray:
    """How often each symbol is sent when ``vector`` is rounded: the zero, then each level twice.

    Exact expectation over the rounding; signs are taken to be equally likely.

    >>> import numpy as np
    >>> symbol_probabilities(np.array([0.6, 0.8]), (0.0, 1.0), 2, "l2").round(3).tolist()
    [0.3, 0.35, 0.35]
    """
    import numpy as np

    from slimgrad.theory import MagnitudeDensity, level_probabilities

    magnitudes = MagnitudeDensity.from_vector(vector, bucket_size, norm).magnitudes
    mass = level_probabilities(levels, MagnitudeDensity(magnitudes))  # each counts alike
    return np.concatenate([mass[:1], np.repeat(mass[1:] / 2, 2)])


def _sampled(data: str, bucket_size: int) -> tuple[np.ndarray, str]:
    import numpy as np

    rng = np.random.Generator(np.random.PCG64(0))
    size = max(1, 2**18 // bucket_size) * bucket_size
    drawn = rng.standard_normal(size) if data == "gauss" else rng.laplace(size=size)
    return drawn, f"{size:,} independent {data} components"


def _read(path: Path, bucket_size: int) -> tuple[np.ndarray, str]:
    """Buckets of each array in ``path``, spread evenly when there are too many."""
    import numpy as np

    if path.suffix not in (".npy", ".pt") or not path.is_file():
        raise ConfigError(
            f"--data {path}: give gauss, laplace, or an existing file ending in .npy or .pt"
        )
    arrays = _load(path)
    total = sum(array.size for array in arrays)
    if not all(np.isfinite(array).all() for array in arrays) or not any(map(np.any, arrays)):
        raise ConfigError(f"--data {path}: needs finite components that are not all zero")
    whole = [array[: array.size // bucket_size * bucket_size] for array in arrays]
    rows = np.concatenate(whole).reshape(-1, bucket_size)
    if not len(rows):
        return np.concatenate(arrays).astype(np.float64), f"{path.name}: {total:,} components"
    kept = min(len(rows), MOST_COMPONENTS // bucket_size)
    rows = rows[np.linspace(0, len(rows) - 1, kept).astype(np.int64)]
    rows = rows[rows.any(axis=1)]
    if not len(rows):
        raise ConfigError(f"--data {path}: the buckets that are looked at hold only zeros")
    source = f"{path.name}: {rows.size:,} of {total:,} components"
    return rows.ravel().astype(np.float64), source


def _load(path: Path) -> list[np.ndarray]:
    """The flat float32 arrays in ``path``; no code in the file is run."""
    import pickle

    import numpy as np
    import torch

    try:
        if path.suffix == ".npy":
            return [np.load(path, allow_pickle=False).astype(np.float32).ravel()]
        held = torch.load(path, weights_only=True, map_location="cpu")
        tensors = list(held.values()) if isinstance(held, dict) else [held]
        return [tensor.detach().float().numpy().ravel() for tensor in tensors]
    except (ValueError, TypeError, AttributeError, RuntimeError, EOFError, pickle.UnpicklingError):
        raise ConfigError(
            f"--data {path}: holds neither an array of numbers nor named tensors"
        ) from None
