"""How much of each layer's weight gradient to compute, and when leaving some out pays."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from slimgrad.core.errors import ConfigError
from slimgrad.theory.arguments import checked_array, checked_number
from slimgrad.theory.line_search import least_point

Numbers = Sequence[float] | np.ndarray
BISECTIONS = 200
LEAST_RATE = 1e-9


def noise_share(batch_size: float, noise_scale: float) -> float:
    """How much added noise costs steps: B_noise / (B + B_noise), from 0 (not) to 1 (in full).

    Args:
        batch_size: B, samples a step, > 0.
        noise_scale: B_noise, gradient noise scale in samples: trace of the per-sample covariance
            over the squared norm of the mean gradient, >= 0.

    Raises:
        ConfigError: a value out of range.

    >>> noise_share(128, 384)
    0.75

    References:
        McCandlish, Kaplan, Amodei (2018), "An empirical model of large-batch training".
    """
    batch = checked_number("batch_size", batch_size, 0, open_low=True)
    scale = checked_number("noise_scale", noise_scale, 0)
    return scale / (batch + scale)


def approximation_pays(
    added_variance: float, layer_seconds: float, other_seconds: float, noise: float = 1.0
) -> bool:
    """Whether computing slightly less of one layer's weight gradient saves time to an accuracy.

    With a share rho computed a step takes A + b rho seconds, and 1 + v (1 / rho - 1) times as many
    steps are needed. Their product falls as rho leaves 1 iff v < b / (A + b).

    Args:
        added_variance: v, variance that rho = 1/2 adds, in units of the mini-batch noise, >= 0.
        layer_seconds: b, measured time of the exact weight gradient, >= 0.
        other_seconds: A, measured time of the rest of the step, > 0.
        noise: share of the added noise that costs steps, see ``noise_share``.

    Raises:
        ConfigError: a value out of range.

    >>> approximation_pays(0.03, layer_seconds=0.1, other_seconds=0.9)
    True
    """
    v = checked_number("added_variance", added_variance, 0)
    b = checked_number("layer_seconds", layer_seconds, 0)
    A = checked_number("other_seconds", other_seconds, 0, open_low=True)
    return v * checked_number("noise", noise, 0, 1) < b / (A + b)


@dataclass(frozen=True)
class LayerRates:
    """A share of the weight gradient to compute for each layer, and what it gives.

    Attributes:
        rates: rho_l, 1 for a layer that is better left exact.
        step_seconds: T = A + sum_l b_l rho_l.
        added_variance: sum_l v_l (1 / rho_l - 1), in units of the mini-batch noise.
        time_ratio: time to the same accuracy over that of exact training; ``rates_within`` lets all
            of the added noise cost steps.
    """

    rates: tuple[float, ...]
    step_seconds: float
    added_variance: float
    time_ratio: float


def best_rates(
    added_variances: Numbers,
    layer_seconds: Numbers,
    other_seconds: float,
    *,
    noise: float = 1.0,
    least_rate: float = 0.01,
) -> LayerRates:
    """The shares that minimise time a step times the number of steps.

    T = A + sum_l b_l rho_l seconds, S = 1 + theta sum_l v_l (1 / rho_l - 1) times the steps. At the
    optimum rho_l = min(1, sqrt(lambda v_l / b_l)) with lambda = theta T / S; lambda is searched.

    Args:
        added_variances: v_l, variance that rho = 1/2 adds, in units of the mini-batch noise, >= 0.
        layer_seconds: b_l, measured time of each exact weight gradient, > 0.
        other_seconds: A, measured time of the rest of the step, > 0.
        noise: theta, share of the added noise that costs steps, see ``noise_share``.
        least_rate: lower limit of every rho, 1e-9 to 1.

    Raises:
        ConfigError: values out of range, or unequal lengths.

    >>> [round(rate, 3) for rate in best_rates([0.0625], [1.0], 1.0).rates]
    [0.258]

    References:
        McCandlish, Kaplan, Amodei (2018), for the price of noise in steps.
    """
    v, b = _layers(added_variances, layer_seconds)
    A = checked_number("other_seconds", other_seconds, 0, open_low=True)
    theta = checked_number("noise", noise, 0, 1)
    least = checked_number("least_rate", least_rate, LEAST_RATE, 1)
    turns = _turns(v, b)

    def cost(log_price: float) -> float:
        rates = _rates(turns, log_price, least)
        return (A + float(b @ rates)) * (1 + theta * float(v @ (1 / rates - 1)))

    low, high = _price_range(turns, least)
    ends = [least_point(cost, low, high), high]
    return _answer(_rates(turns, min(ends, key=cost), least), v, b, A, theta)


def rates_within(
    added_variances: Numbers,
    layer_seconds: Numbers,
    other_seconds: float,
    allowed_variance: float,
    *,
    least_rate: float = 0.01,
) -> LayerRates:
    """The shares of least time whose added variance stays within a budget.

    Minimises sum_l b_l rho_l subject to sum_l v_l (1 / rho_l - 1) <= allowed:
    rho_l = min(1, sqrt(lambda v_l / b_l)) with lambda by bisection.

    Args:
        added_variances: v_l, variance that rho = 1/2 adds, in units of the mini-batch noise, >= 0.
        layer_seconds: b_l, measured time of each exact weight gradient, > 0.
        other_seconds: A, measured time of the rest of the step, > 0.
        allowed_variance: the budget, in units of the mini-batch noise, >= 0.
        least_rate: lower limit of every rho, 1e-9 to 1.

    Raises:
        ConfigError: values out of range, or unequal lengths.

    >>> [round(rate, 6) for rate in rates_within([0.1, 0.1], [1.0, 1.0], 1.0, 0.2).rates]
    [0.5, 0.5]
    """
    v, b = _layers(added_variances, layer_seconds)
    A = checked_number("other_seconds", other_seconds, 0, open_low=True)
    allowed = checked_number("allowed_variance", allowed_variance, 0)
    least = checked_number("least_rate", least_rate, LEAST_RATE, 1)
    turns = _turns(v, b)
    low, high = _price_range(turns, least)
    for _ in range(BISECTIONS):
        middle = (low + high) / 2
        rates = _rates(turns, middle, least)
        low, high = (middle, high) if float(v @ (1 / rates - 1)) > allowed else (low, middle)
    return _answer(_rates(turns, high, least), v, b, A, 1.0)


def _layers(added_variances: Numbers, layer_seconds: Numbers) -> tuple[np.ndarray, np.ndarray]:
    v = checked_array("added_variances", added_variances)
    b = checked_array("layer_seconds", layer_seconds)
    if v.shape != b.shape:
        raise ConfigError(f"{len(v)} added variances need as many layer_seconds, got {len(b)}")
    if v.min() < 0 or b.min() <= 0:
        raise ConfigError(
            f"added_variances must be >= 0 and layer_seconds > 0, got {v.min()} and {b.min()}"
        )
    return v, b


def _turns(v: np.ndarray, b: np.ndarray) -> np.ndarray:
    """Logarithm of the price from which each layer is exact; infinite for one that adds nothing."""
    with np.errstate(divide="ignore"):
        return np.log(b) - np.log(v)


def _price_range(turns: np.ndarray, least: float) -> tuple[float, float]:
    """From all layers at the lower limit to all that can be exact."""
    finite = turns[np.isfinite(turns)]
    if len(finite) == 0:
        return 0.0, 0.0
    return float(finite.min()) + 2 * math.log(least), float(finite.max())


def _rates(turns: np.ndarray, log_price: float, least: float) -> np.ndarray:
    return np.maximum(least, np.exp(np.minimum((log_price - turns) / 2, 0.0)))


def _answer(
    rates: np.ndarray, v: np.ndarray, b: np.ndarray, other_seconds: float, theta: float
) -> LayerRates:
    seconds = other_seconds + float(b @ rates)
    added = float(v @ (1 / rates - 1))
    exact = other_seconds + float(b.sum())
    ratio = seconds * (1 + theta * added) / exact
    return LayerRates(tuple(float(rate) for rate in rates), seconds, added, ratio)
