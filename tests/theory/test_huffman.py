import heapq
import itertools

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from slimgrad.core.errors import ConfigError
from slimgrad.theory import entropy_bits, fixed_width_bits, huffman_bits, huffman_lengths

COUNTS = st.lists(st.integers(0, 1000), min_size=1, max_size=24).filter(any)


def tree_bits(counts):
    """Total length of Huffman's code: what merging the two lightest trees costs."""
    heap = [count for count in counts if count]
    if len(heap) == 1:
        return heap[0]
    heapq.heapify(heap)
    total = 0
    while len(heap) > 1:
        merged = heapq.heappop(heap) + heapq.heappop(heap)
        total += merged
        heapq.heappush(heap, merged)
    return total


@settings(max_examples=200, deadline=None)
@given(COUNTS)
def test_without_a_limit_it_is_huffman_s_code(counts):
    lengths = huffman_lengths(counts)
    assert sum(c * length for c, length in zip(counts, lengths, strict=True)) == tree_bits(counts)
    assert all((length == 0) == (count == 0) for count, length in zip(counts, lengths, strict=True))
    used = [length for length in lengths if length]
    assert sum(2.0**-length for length in used) == (1.0 if len(used) > 1 else 0.5)


@settings(max_examples=60, deadline=None)
@given(st.lists(st.integers(1, 200), min_size=2, max_size=6), st.integers(3, 5))
def test_no_code_within_the_limit_is_shorter(counts, limit):
    best = min(
        sum(c * length for c, length in zip(counts, lengths, strict=True))
        for lengths in itertools.product(range(1, limit + 1), repeat=len(counts))
        if sum(2.0**-length for length in lengths) <= 1
    )
    lengths = huffman_lengths(counts, limit)
    assert max(lengths) <= limit
    assert sum(c * length for c, length in zip(counts, lengths, strict=True)) == best


@settings(max_examples=100, deadline=None)
@given(COUNTS)
def test_mean_length_lies_between_entropy_and_one_bit_more(counts):
    entropy = entropy_bits(counts)
    assert entropy - 1e-12 <= huffman_bits(counts)
    assert huffman_bits(counts) < entropy + 1 or entropy == 0
    used = sum(count > 0 for count in counts)
    assert entropy <= fixed_width_bits(used) + 1e-12
    assert huffman_bits(counts, 5) >= huffman_bits(counts) - 1e-12


def test_the_limit_binds_for_fibonacci_counts():
    counts = [1, 1, 2, 3, 5, 8, 13, 21, 34]
    assert max(huffman_lengths(counts)) == 8
    assert huffman_lengths(counts, 4)[0] == 4
    assert max(huffman_lengths(counts, 4)) == 4


def test_a_symbol_that_is_alone_gets_one_bit():
    assert huffman_lengths([0, 5, 0]) == (0, 1, 0)
    assert huffman_bits([0, 5, 0]) == 1.0
    assert entropy_bits([0, 5, 0]) == 0.0


def test_extreme_probabilities():
    assert huffman_lengths([1.0, 1e-300, 1e-320]) == (1, 2, 2)
    counts = 2.0 ** -np.arange(200)
    assert max(huffman_lengths(counts)) == 199
    assert max(huffman_lengths(counts, 16)) == 16


def test_more_symbols_than_words_name_the_limit_to_take():
    with pytest.raises(ConfigError, match="limit_bits >= 3"):
        huffman_lengths([1, 1, 1, 1, 1], 2)


@pytest.mark.parametrize("limit", [0, 65, 2.0])
def test_a_bad_limit_is_refused(limit):
    with pytest.raises(ConfigError, match=f"limit_bits={limit!r}"):
        huffman_lengths([1, 1], limit)


@pytest.mark.parametrize("measure", [entropy_bits, huffman_bits, huffman_lengths])
@pytest.mark.parametrize("probabilities", [[], [0.0], [-0.1, 1.1], [float("nan")]])
def test_probabilities_that_are_none_are_refused(measure, probabilities):
    with pytest.raises(ConfigError, match="probabilities must"):
        measure(probabilities)


def test_entropy_of_known_sources():
    assert entropy_bits([1] * 16) == pytest.approx(4.0)
    assert entropy_bits([0.9, 0.1]) == pytest.approx(0.4689956)
    with pytest.raises(ConfigError, match="symbols=0"):
        fixed_width_bits(0)
