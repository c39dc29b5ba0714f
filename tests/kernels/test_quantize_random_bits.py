"""The random bits of the rounding pass simple tests of uniformity and independence.

All use one fixed set of keys, so they pass or fail for good; thresholds are what an ideal source
exceeds with probability below 1e-6 in the whole file.
"""

from __future__ import annotations

import pytest
import torch

from slimgrad.core.rng import stream_key
from slimgrad.kernels.reference.rounding_bits import chunk_keys, random_bits

N = 1 << 18
KEYS = [0, 1, 0xFFFFFFFFFFFFFFFF, stream_key(0, 0, "conv1.weight")]
# Two-sided normal quantile at 1e-6 over the ~150 statistics below.
SIGMAS = 6.0


def chi_square_sigmas(values: torch.Tensor, bins: int) -> float:
    """Distance of Pearson's statistic from its mean, in its standard deviations."""
    counts = torch.bincount(values, minlength=bins).double()
    expected = len(values) / bins
    statistic = float(((counts - expected) ** 2 / expected).sum())
    return (statistic - (bins - 1)) / (2 * (bins - 1)) ** 0.5


def correlation_sigmas(a: torch.Tensor, b: torch.Tensor) -> float:
    """Correlation of two sequences of uniform 16-bit integers, in standard deviations."""
    centred = (a.double() - 32767.5) * (b.double() - 32767.5)
    return float(centred.mean() / (65536**2 / 12)) * len(a) ** 0.5


@pytest.mark.parametrize("key", KEYS)
def test_both_bytes_and_all_bits_are_uniform(key):
    r = random_bits(N, key)
    assert r.min() >= 0
    assert r.max() <= 65535
    # Pearson's statistic with 255 degrees of freedom has a heavier upper tail than the normal.
    assert abs(chi_square_sigmas(r >> 8, 256)) < SIGMAS + 1.5
    assert abs(chi_square_sigmas(r & 255, 256)) < SIGMAS + 1.5
    for bit in range(16):
        ones = int(((r >> bit) & 1).sum())
        assert abs(ones - N / 2) < SIGMAS * (N / 4) ** 0.5


@pytest.mark.parametrize("key", KEYS)
@pytest.mark.parametrize("lag", [1, 2, 15, 16, 17, 32, 64, 512, 65536])
def test_neighbours_lanes_halves_and_chunks_are_uncorrelated(key, lag):
    r = random_bits(N, key)
    assert abs(correlation_sigmas(r[:-lag], r[lag:])) < SIGMAS


@pytest.mark.parametrize("bit", [0, 1, 7, 31, 32, 33, 63])
def test_keys_that_differ_in_one_bit_are_uncorrelated(bit):
    key = stream_key(3, 14, "fc.weight")
    a, b = random_bits(N, key), random_bits(N, key ^ (1 << bit))
    assert abs(correlation_sigmas(a, b)) < SIGMAS
    equal = int((a == b).sum())
    assert abs(equal - N / 65536) < SIGMAS * 2 * (N / 65536) ** 0.5 + 12


def test_ranks_and_steps_are_uncorrelated():
    streams = [
        random_bits(N, stream_key(0, step, "conv1.weight", rank))
        for step in (0, 1)
        for rank in (0, 1)
    ]
    for i, a in enumerate(streams):
        for b in streams[i + 1 :]:
            assert abs(correlation_sigmas(a, b)) < SIGMAS


def test_the_two_halves_of_a_word_are_uncorrelated_within_a_lane():
    r = random_bits(N, 5).view(-1, 2, 16)
    for lane in range(16):
        assert abs(correlation_sigmas(r[:, 0, lane], r[:, 1, lane])) < SIGMAS


def test_a_component_has_the_same_bits_whatever_the_length():
    whole = random_bits(140_000, 9)
    for n in (0, 1, 31, 32, 33, 65535, 65536, 65537):
        assert torch.equal(random_bits(n, 9), whole[:n])


def test_chunk_keys_of_a_known_stream():
    """The first outputs of splitmix64 seeded with 0, as published with the algorithm."""
    first = chunk_keys(0, 0)
    second = chunk_keys(0, 1)
    assert first[0] | first[1] << 32 == 0xE220A8397B1DCDAF
    assert second[0] | second[1] << 32 == 0x6E789E6AA1B965F4
