"""Means, spreads and paired comparisons over seeds, without claims the data do not carry.

Every method is run with the same seeds as the exact run, so a seed's initialisation and data order
cancel in the difference. A difference counts as shown only when its 95 % interval excludes zero.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

from slimgrad.core.errors import ConfigError

CONFIDENCE = 0.95
# Differences that agree to this share of the values they are taken from count as equal.
_ROUNDING = 1e-9

Direction = Literal["higher", "lower"]
Verdict = Literal["better", "worse", "no difference shown"]


@dataclass(frozen=True)
class Spread:
    """Mean and standard deviation over seeds.

    Attributes:
        n: number of seeds.
        mean: arithmetic mean.
        sd: sample standard deviation (n - 1 in the denominator); None for one seed.
    """

    n: int
    mean: float
    sd: float | None


@dataclass(frozen=True)
class Estimate:
    """A paired effect with its 95 % interval.

    Attributes:
        n: number of seeds present on both sides.
        mean: mean effect.
        sd: standard deviation of the per-seed effects; None for one seed.
        low, high: ends of the interval; None when the data do not carry one.
        no_interval_reason: why there is no interval; "" when there is one.
    """

    n: int
    mean: float
    sd: float | None
    low: float | None
    high: float | None
    no_interval_reason: str = ""

    @property
    def excludes_zero(self) -> bool:
        """Whether there is an interval and zero lies outside it."""
        return self.low is not None and self.high is not None and (self.low > 0 or self.high < 0)

    def verdict(self, better: Direction) -> Verdict:
        """What the interval shows, where ``better`` says which direction is good.

        >>> Estimate(3, 1.0, 0.1, 0.7, 1.3).verdict("higher")
        'better'
        >>> Estimate(3, 1.0, 0.9, -1.2, 3.2).verdict("higher")
        'no difference shown'
        """
        if not self.excludes_zero:
            return "no difference shown"
        return "better" if (self.mean > 0) == (better == "higher") else "worse"


@dataclass(frozen=True)
class TimeComparison:
    """One time comparison in both of its usual forms, as shares of 1.

    Attributes:
        time_saved: 1 - t / t_exact; 0.5 means half the time. Positive is better.
        throughput_gain: t_exact / t - 1; 1.0 means twice the steps a second. Positive is better.
    """

    time_saved: Estimate
    throughput_gain: Estimate


def spread(values: Sequence[float]) -> Spread:
    """Mean and sample standard deviation of ``values``, one a seed.

    Raises:
        ConfigError: ``values`` is empty.

    >>> spread([1.0, 2.0, 3.0])
    Spread(n=3, mean=2.0, sd=1.0)
    >>> spread([5.0]).sd is None
    True
    """
    if not values:
        raise ConfigError("no values: a mean needs at least one finished run")
    mean = math.fsum(values) / len(values)
    if len(values) == 1:
        return Spread(1, mean, None)
    squares = math.fsum((value - mean) ** 2 for value in values)
    return Spread(len(values), mean, math.sqrt(squares / (len(values) - 1)))


def estimate(effects: Sequence[float], *, counted: bool = False, magnitude: float = 0) -> Estimate:
    """Mean of per-seed ``effects`` with its Student t interval.

    The interval is mean +- t_{0.975, n-1} sd / sqrt(n). It covers the true mean effect with
    probability 95 % when the effects are independent and normal (Student, 1908). Equal effects
    carry no spread to judge chance by: they give no interval, except for a quantity that is
    counted rather than measured (bits, multiply-adds), where the interval is that one value.

    Args:
        effects: one value a seed, any unit.
        counted: whether the quantity has no measurement noise.
        magnitude: largest absolute value the effects were computed from, which sets the size of
            rounding errors; 0 to use the effects themselves.

    >>> pair = estimate([1.0, 3.0])
    >>> round(pair.low, 3), round(pair.high, 3)
    (-10.706, 14.706)
    >>> estimate([1.0]).no_interval_reason
    'one seed gives no interval'
    """
    basic = spread(effects)
    largest = max(magnitude, *(abs(effect) for effect in effects))
    equal = max(effects) - min(effects) <= _ROUNDING * largest
    if counted and equal:
        return Estimate(basic.n, basic.mean, basic.sd, basic.mean, basic.mean)
    if basic.sd is None:
        return Estimate(1, basic.mean, None, None, None, "one seed gives no interval")
    if equal:
        reason = "all seeds differ by the same amount, so there is no spread to judge chance by"
        return Estimate(basic.n, basic.mean, basic.sd, None, None, reason)
    half = student_t(basic.n - 1) * basic.sd / math.sqrt(basic.n)
    return Estimate(basic.n, basic.mean, basic.sd, basic.mean - half, basic.mean + half)


def student_t(degrees: int, confidence: float = CONFIDENCE) -> float:
    """Two-sided critical value of Student's t with ``degrees`` degrees of freedom.

    >>> round(student_t(2), 3)
    4.303
    """
    from scipy import stats  # heavy, and `--help` must not pay for it

    return float(stats.t.ppf(0.5 + confidence / 2, degrees))


def paired_difference(
    values: Mapping[int, float], reference: Mapping[int, float], *, counted: bool = False
) -> Estimate | None:
    """Per-seed ``values - reference`` with its 95 % interval; None without a common seed.

    Args:
        values: value of each seed, any unit.
        reference: value of each seed of the exact run, same unit.
        counted: see :func:`estimate`.

    >>> paired_difference({1: 4.0, 2: 4.0}, {1: 32.0, 2: 32.0}, counted=True).high
    -28.0
    >>> paired_difference({1: 4.0}, {2: 32.0}) is None
    True
    """
    seeds = sorted(values.keys() & reference.keys())
    if not seeds:
        return None
    magnitude = max(max(abs(values[seed]), abs(reference[seed])) for seed in seeds)
    effects = [values[seed] - reference[seed] for seed in seeds]
    return estimate(effects, counted=counted, magnitude=magnitude)


def compare_times(
    seconds: Mapping[int, float], reference: Mapping[int, float]
) -> TimeComparison | None:
    """Paired comparison of times as time saved and as throughput gain; None without a common seed.

    The interval is taken for the mean of log(t / t_exact) and carried over, so both forms describe
    one result: they exclude zero together, and (1 - saved) (1 + gain) = 1 for the means and for the
    ends. The means are geometric.

    Args:
        seconds: time of each seed, > 0.
        reference: time of each seed of the exact run, > 0.

    Raises:
        ConfigError: a time is not a positive number.

    >>> both = compare_times({1: 5.0, 2: 5.0}, {1: 10.0, 2: 10.0})
    >>> round(both.time_saved.mean, 6), round(both.throughput_gain.mean, 6)
    (0.5, 1.0)
    """
    seeds = sorted(seconds.keys() & reference.keys())
    if not seeds:
        return None
    for seed in seeds:
        for value in (seconds[seed], reference[seed]):
            if not (math.isfinite(value) and value > 0):
                raise ConfigError(f"seed {seed} has the time {value!r}, which must be > 0 seconds")
    ratios = [seconds[seed] / reference[seed] for seed in seeds]
    logs = estimate([math.log(ratio) for ratio in ratios], magnitude=1.0)
    saved = _carry(logs, [1 - ratio for ratio in ratios], lambda log: -math.expm1(log))
    gain = _carry(logs, [1 / ratio - 1 for ratio in ratios], lambda log: math.expm1(-log))
    return TimeComparison(saved, gain)


def _carry(
    logs: Estimate, effects: Sequence[float], transform: Callable[[float], float]
) -> Estimate:
    """The estimate of a decreasing function of the log ratio."""
    low = None if logs.high is None else transform(logs.high)
    high = None if logs.low is None else transform(logs.low)
    sd = spread(effects).sd
    return Estimate(logs.n, transform(logs.mean), sd, low, high, logs.no_interval_reason)
