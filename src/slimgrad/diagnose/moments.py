"""Sums over batches from which bias and variance of an estimator follow, without keeping them."""

from __future__ import annotations

import math

import torch

GROUPS = 8
# 97.5 % quantile of Student's t with GROUPS - 1 degrees of freedom.
STUDENT_QUANTILE = 2.3646242516


class PairedMoments:
    """Moments of pairs (exact gradient, estimates of it), one pair a batch.

    Attributes:
        count: batches so far.
    """

    def __init__(self) -> None:
        self.count = 0
        self._difference: dict[int, torch.Tensor] = {}
        self._sizes = [0] * GROUPS
        self._exact_sum: torch.Tensor | None = None
        self._squares = self._estimate_squares = self._error_squares = self._draw_squares = 0.0
        self._cosines: list[float] = []

    def add(self, group: int, exact: torch.Tensor, draws: list[torch.Tensor]) -> None:
        """Count one batch.

        Args:
            group: from 0 to GROUPS - 1.
            exact: flat float64.
            draws: one estimate, or two independent ones of the same batch.
        """
        estimate = sum(draws[1:], draws[0]) / len(draws)
        difference = estimate - exact
        self.count += 1
        self._sizes[group] += 1
        if group in self._difference:
            self._difference[group] += difference
        else:
            self._difference[group] = difference
        self._exact_sum = exact.clone() if self._exact_sum is None else self._exact_sum.add_(exact)
        norm = float(exact.norm())
        self._squares += norm**2
        for draw in draws:
            self._estimate_squares += float(draw.square().sum()) / len(draws)
            self._error_squares += float((draw - exact).square().sum()) / len(draws)
            size = float(draw.norm())
            if norm and size:
                self._cosines.append(float(draw @ exact) / norm / size)
        if len(draws) == 2:
            self._draw_squares += float((draws[0] - draws[1]).square().sum()) / 2

    @property
    def mean_square_norm(self) -> float:
        """Mean squared norm of the exact gradient."""
        return self._squares / self.count

    @property
    def mean_square_estimate(self) -> float:
        """Mean squared norm of an estimate."""
        return self._estimate_squares / self.count

    @property
    def mean_square_error(self) -> float:
        """Mean squared distance of an estimate from the exact gradient of its batch."""
        return self._error_squares / self.count

    @property
    def draw_variance(self) -> float:
        """Mean over batches of the variance over draws, summed over components."""
        return self._draw_squares / self.count

    @property
    def batch_noise(self) -> float:
        """Variance of the exact gradient over batches, summed over components."""
        assert self._exact_sum is not None
        mean_square = float(self._exact_sum.square().sum()) / self.count
        return max(self._squares - mean_square, 1e-300) / (self.count - 1)

    @property
    def mean_cosine(self) -> float:
        """Mean cosine between estimate and exact gradient; NaN where there is none."""
        return sum(self._cosines) / len(self._cosines) if self._cosines else math.nan

    def squared_bias(self) -> tuple[float, float]:
        """An unbiased estimate of ||E[estimate - exact]||^2, and half its 95 % interval.

        The mean of <D_a, D_b> over pairs of different groups, D_a the mean difference of group a.
        The jackknife variance over groups is at least the true one for a statistic of pairs
        (Efron and Stein, 1981).
        """
        means = torch.stack([self._difference[g] / self._sizes[g] for g in range(GROUPS)])
        gram = means @ means.t()
        with_others = (gram.sum(1) - gram.diagonal()) / (GROUPS - 1)
        value = float(with_others.mean())
        # Leaving a group out changes the mean over pairs by 2 / (GROUPS - 2) times its deviation.
        left_out = value - 2 / (GROUPS - 2) * (with_others - value)
        variance = (GROUPS - 1) / GROUPS * float((left_out - left_out.mean()).square().sum())
        return value, STUDENT_QUANTILE * math.sqrt(variance)
