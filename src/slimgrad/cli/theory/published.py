"""``slimgrad theory published``: the papers' formulas as printed, beside what holds."""

from __future__ import annotations

import math
from typing import Annotated

from slimgrad.cli.output import FLAG
from slimgrad.cli.theory.answer import Answer
from slimgrad.core.errors import ConfigError

LONGEST = 10**12


def published(
    *,
    bits: int = 3,
    dimension: int = 10**6,
    json: Annotated[bool, FLAG] = False,
) -> int:
    """The papers' formulas for NUQSGD (ratio 1/2, one l2 norm) as printed, and what holds.

    Args:
        bits: Width of a component, 2 to 5, its sign included.
        dimension: Length of the vector that shares one norm.
        json: Print JSON on stdout and nothing else there.
    """
    from slimgrad import theory

    if not 2 <= bits <= 5:
        raise ConfigError(f"--bits {bits}: must be from 2 to 5")
    if not 2 <= dimension <= LONGEST:
        raise ConfigError(f"--dimension {dimension}: must be from 2 to {LONGEST:,}")
    s, n = 2 ** (bits - 1) - 2, dimension
    levels = theory.exponential_levels(s)
    subject = f"NUQSGD, {bits} bits (s = {s}), one l2 norm over {n:,} components"
    answer = Answer(subject, assumptions=("levels are 0, 2^-s, ..., 1/2, 1",))
    answer.add("theorem4_printed", "Theorem 4, variance", theory.theorem4_printed(s, n))
    answer.add("variance_bound", "  holds", theory.variance_bound(levels, n))
    if s >= 2:
        _theorem4(answer, s)
    answer.add("lemma17_printed", "Lemma 17, non-zeros", theory.lemma17_printed(s, n))
    answer.add("expected_nonzeros_bound", "  holds", theory.expected_nonzeros_bound(levels, n))
    _theorem5(answer, s, n)
    if n > 4**s:
        ratio = theory.theorem13_ratio(s, n)
        note = "of QSGD's bits; tends to 1 as the length grows"
        answer.add("theorem13_ratio", "Theorem 13, bits", ratio, note)
    vector = theory.theorem23(s, n)
    answer.add("theorem23_exponential", "Theorem 23, variance, NUQSGD", vector.exponential)
    answer.add("theorem23_uniform", "  QSGDinf", vector.uniform)
    note = "so the grid decides, not the norm"
    answer.add("theorem23_exponential_linf", "  NUQSGD, max norm", vector.exponential_linf, note)
    return answer.show(json=json)


def _theorem4(answer: Answer, s: int) -> None:
    """The vector that has more variance than is printed."""
    from slimgrad import theory

    worse = theory.theorem4_counterexample(s)
    vector = f"{worse.d - 1:,} components {worse.small:.4g} and one {worse.large:.4g}"
    answer.add("theorem4_counterexample", "  fails: printed", worse.printed, vector)
    answer.add("theorem4_counterexample_variance", "  fails: variance", worse.variance)


def _theorem5(answer: Answer, s: int, n: int) -> None:
    """Code length without o(1), what equal components need, and what holds."""
    from slimgrad import theory

    answer.add("elias_bits_bound", "code length, holds", theory.elias_bits_bound(n, s))
    if not theorem5_applies(s, n):
        answer.add("theorem5_printed", "Theorem 5, bits", None, "the vector is too short for it")
        return
    found = theory.theorem5_counterexample(n, s)
    fails = found.expected_bits > found.printed_bits
    answer.add("theorem5_printed", "Theorem 5, bits", found.printed_bits, "o(1) dropped: no bound")
    note = "more than printed" if fails else ""
    answer.add("theorem5_equal_bits", "  equal components need", found.expected_bits, note)


def theorem5_applies(s: int, n: int) -> bool:
    """Whether 2^(2s) + 2^s sqrt(n) <= n / e.

    >>> theorem5_applies(2, 65536), theorem5_applies(6, 512)
    (True, False)
    """
    return 4.0**s + 2.0**s * math.sqrt(n) <= n / math.e
