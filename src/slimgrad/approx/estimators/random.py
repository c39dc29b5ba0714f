"""A weight gradient of pure noise."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar, final

import torch

from slimgrad.approx.estimators.base import GradientEstimator, LayerGeometry, WeightGradCost
from slimgrad.approx.estimators.exact import exact_weight_grad
from slimgrad.approx.estimators.settings import check_scale, check_switch
from slimgrad.core.errors import ConfigError
from slimgrad.core.rng import normal


@final
@dataclass(frozen=True)
class Random(GradientEstimator):
    """Replaces the weight gradient by independent normal noise, fresh in every step.

    A ~ N(0, scale^2), independent entries. Biased: the mean is 0, not G, and
    E ||A - G||^2 = ||G||^2 + n scale^2 for a weight of n entries. A control: a method that trains
    no better than this one uses nothing of the gradient.

    With ``match_norm`` A = ||G|| Z / ||Z||, Z normal: a random direction of the exact length, for
    which E ||A - G||^2 = 2 ||G||^2. It computes G to learn its norm, so it saves nothing; it tells
    what the direction of the gradient is worth.

    The draws depend on (seed, step, layer, rank) alone; each further call of a layer within a step
    draws anew. Ranks draw independently, so averaging over W ranks divides the standard deviation
    by sqrt(W). Gradient scaling for float16 divides the noise by the loss scale.

    Args:
        scale: standard deviation, > 0. The default is the paper's: one over
            its batch size.
        match_norm: give the noise the norm of the exact gradient; ``scale`` must keep its default.

    Raises:
        ConfigError: a value that is not allowed.

    References:
        Z. Wang, S. H. Nelaturu, S. Amarasinghe: Accelerated CNN Training Through Gradient
        Approximation, EMC2 2019 ("random gradient").

    >>> geometry = LayerGeometry("linear", (1, 2))
    >>> a = Random().weight_grad(None, torch.ones(2, 1), geometry, key=5)
    >>> b = Random(scale=2 / 128).weight_grad(None, torch.ones(2, 1), geometry, key=5)
    >>> torch.equal(2 * a, b)
    True
    """

    scale: float = 1 / 128
    match_norm: bool = False

    name: ClassVar[str] = "random"
    unbiased: ClassVar[bool] = False
    needs_input: ClassVar[bool] = False
    needs_key: ClassVar[bool] = True

    def __post_init__(self) -> None:
        check_scale("Random", self.scale)
        check_switch("Random", "match_norm", self.match_norm)
        if self.match_norm and self.scale != Random.scale:
            raise ConfigError(
                f"Random: match_norm=True sets the length by itself, got scale={self.scale!r} "
                "beside it; leave scale out"
            )
        # The class says False; only this setting needs the input.
        object.__setattr__(self, "needs_input", self.match_norm)

    def weight_grad(
        self,
        x: torch.Tensor | None,
        grad_out: torch.Tensor,
        geometry: LayerGeometry,
        key: int,
    ) -> torch.Tensor:
        """Noise of the stream ``key`` in the weight's shape."""
        noise = normal(key, geometry.weight_shape)
        if not self.match_norm:
            return noise.mul_(self.scale).to(device=grad_out.device, dtype=grad_out.dtype)
        assert x is not None
        length = exact_weight_grad(x, grad_out, geometry).float().norm()
        noise = noise.to(grad_out.device)
        return noise.mul_(length / noise.norm()).to(grad_out.dtype)

    def cost(self, geometry: LayerGeometry, grad_out_shape: tuple[int, ...]) -> WeightGradCost:
        """None, or all of the exact gradient; drawing the noise costs time beside them."""
        exact = geometry.weight_grad_macs(grad_out_shape)
        return WeightGradCost(macs=exact if self.match_norm else 0, exact_macs=exact)
