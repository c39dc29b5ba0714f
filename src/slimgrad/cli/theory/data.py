"""Components of a gradient, sampled or read, that a question is asked about."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

from slimgrad.core.errors import ConfigError

if TYPE_CHECKING:
    import numpy as np

SAMPLED = ("gauss", "laplace")
MOST_COMPONENTS = 2**20


def components(data: str, bucket_size: int) -> tuple[np.ndarray, str]:
    """Whole buckets of float64 components, and where they come from in words.

    Args:
        data: "gauss", "laplace", or a file: .npy, or .pt with one tensor.
        bucket_size: at most 2**20; of a longer vector, buckets spread over it are taken.

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

    from slimgrad.theory import MagnitudeDensity

    r = MagnitudeDensity.from_vector(vector, bucket_size, norm).magnitudes
    grid = np.asarray(levels)
    above = np.clip(np.searchsorted(grid, r, side="right"), 1, len(grid) - 1)
    up = (r - grid[above - 1]) / (grid[above] - grid[above - 1])
    mass = np.bincount(above, weights=up, minlength=len(grid))
    mass[:-1] += np.bincount(above - 1, weights=1 - up, minlength=len(grid) - 1)[: len(grid) - 1]
    mass /= mass.sum()
    return np.concatenate([mass[:1], np.repeat(mass[1:] / 2, 2)])


def _sampled(data: str, bucket_size: int) -> tuple[np.ndarray, str]:
    import numpy as np

    rng = np.random.Generator(np.random.PCG64(0))
    size = max(1, 2**18 // bucket_size) * bucket_size
    drawn = rng.standard_normal(size) if data == "gauss" else rng.laplace(size=size)
    return drawn, f"{size:,} independent {data} components"


def _read(path: Path, bucket_size: int) -> tuple[np.ndarray, str]:
    import numpy as np

    if path.suffix not in (".npy", ".pt") or not path.is_file():
        raise ConfigError(
            f"--data {path}: give gauss, laplace, or an existing file ending in .npy or .pt"
        )
    vector = np.asarray(_load(path)).ravel()
    if not np.isfinite(vector).all() or not vector.any():
        raise ConfigError(f"--data {path}: needs finite components that are not all zero")
    buckets = len(vector) // bucket_size
    if buckets == 0:
        return vector.astype(np.float64), f"{path.name}: {len(vector):,} components"
    kept = min(buckets, max(1, MOST_COMPONENTS // bucket_size))
    chosen = np.linspace(0, buckets - 1, kept).astype(np.int64)
    rows = vector[: buckets * bucket_size].reshape(buckets, bucket_size)[chosen]
    rows = rows[rows.any(axis=1)]
    if not len(rows):
        raise ConfigError(f"--data {path}: the buckets that are looked at hold only zeros")
    return rows.ravel().astype(np.float64), (
        f"{path.name}: {rows.size:,} of {len(vector):,} components"
    )


def _load(path: Path) -> Any:
    """The array or tensor in ``path``; no code in the file is run."""
    import pickle

    import numpy as np
    import torch

    try:
        if path.suffix == ".npy":
            return np.load(path, allow_pickle=False).astype(np.float32)
        return torch.load(path, weights_only=True, map_location="cpu").detach().float().numpy()
    except (ValueError, TypeError, AttributeError, RuntimeError, EOFError, pickle.UnpicklingError):
        raise ConfigError(f"--data {path}: holds no single array of numbers") from None
