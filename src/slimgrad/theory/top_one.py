"""What the estimator that keeps one position a map leaves out."""

from __future__ import annotations

import numpy as np

from slimgrad.core.errors import ConfigError
from slimgrad.theory.arguments import checked_array
from slimgrad.theory.sampling import LARGEST


def top_one_bias(grad_maps: np.ndarray, patches: np.ndarray) -> np.ndarray:
    """Exact difference between the top-1 estimate and the weight gradient of one filter.

    sum over maps b and positions p of g[b, p] (X[b, p*(b)] - X[b, p]), p* the position of largest
    |g| (the first of equals), for the estimate that weights X[b, p*] by sum_p g[b, p]. It is zero
    for every gradient only if all patches of a map are equal: keeping the sum of a map keeps the
    bias gradient, not the weight gradient.

    Args:
        grad_maps: g, samples by positions.
        patches: X, samples by positions by entries of the filter.

    Returns:
        The bias, one number for each entry of the filter.

    Raises:
        ConfigError: shapes that do not fit.

    >>> top_one_bias(np.array([[1.0, -3.0]]), np.array([[[5.0], [7.0]]])).tolist()
    [2.0]

    References:
        For the estimator of Wang, Nelaturu, Amarasinghe (2019), section 2.
    """
    g = checked_array("grad_maps", grad_maps, ndim=2, most=LARGEST)
    x = checked_array("patches", patches, ndim=3, most=LARGEST)
    if g.shape != x.shape[:2]:
        raise ConfigError(f"maps of shape {g.shape} need patches of that shape, got {x.shape[:2]}")
    chosen = x[np.arange(len(g)), np.abs(g).argmax(axis=1)]
    return np.einsum("bp,bpe->e", g, chosen[:, None, :] - x)
