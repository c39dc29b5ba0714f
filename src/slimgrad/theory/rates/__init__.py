"""Steps, step sizes and bits that convergence theorems promise, with their assumptions."""

from slimgrad.theory.rates.asynchronous import asynchronous_gradient_bound, asynchronous_rate
from slimgrad.theory.rates.convex import (
    convex_gap_bound,
    convex_rate,
    convex_relative_gap_bound,
    convex_step_size,
)
from slimgrad.theory.rates.decentralised import (
    DcdCondition,
    dcd_condition,
    decentralised_gradient_bound,
    decentralised_rate,
)
from slimgrad.theory.rates.gradients import QuantizedGradients
from slimgrad.theory.rates.momentum import (
    momentum_convex_gap_bound,
    momentum_convex_rate,
    momentum_growth,
    momentum_nonconvex_rate,
)
from slimgrad.theory.rates.nonconvex import (
    nonconvex_gradient_bound,
    nonconvex_rate,
    nonconvex_terms,
)
from slimgrad.theory.rates.record import Rate
from slimgrad.theory.rates.topology import Spectrum, mixing_weights, spectrum

__all__ = [
    "DcdCondition",
    "QuantizedGradients",
    "Rate",
    "Spectrum",
    "asynchronous_gradient_bound",
    "asynchronous_rate",
    "convex_gap_bound",
    "convex_rate",
    "convex_relative_gap_bound",
    "convex_step_size",
    "dcd_condition",
    "decentralised_gradient_bound",
    "decentralised_rate",
    "mixing_weights",
    "momentum_convex_gap_bound",
    "momentum_convex_rate",
    "momentum_growth",
    "momentum_nonconvex_rate",
    "nonconvex_gradient_bound",
    "nonconvex_rate",
    "nonconvex_terms",
    "spectrum",
]
