"""Occurrences of symbols, in all blocks and in some."""

from __future__ import annotations

import itertools

import pytest
import torch

from slimgrad import kernels
from slimgrad.core.errors import ConfigError
from slimgrad.kernels import backend


@pytest.mark.parametrize("bits", range(1, 9))
def test_native_counts_are_those_of_the_reference(bits):
    generator = torch.Generator().manual_seed(bits)
    for n, stride in itertools.product((0, 1, 511, 512, 513, 40 * 512 + 9), (1, 3, 16)):
        symbols = torch.randint(0, 1 << bits, (n,), generator=generator, dtype=torch.uint8)
        packed = kernels.pack_symbols(symbols, bits)
        with backend.use_backend("reference"):
            expected = kernels.symbol_counts(packed, n, bits, stride=stride)
        if stride == 1:
            assert torch.equal(expected, torch.bincount(symbols, minlength=1 << bits))
        for isa in backend.usable_isas():
            with backend.use_backend("native", isa):
                got = kernels.symbol_counts(packed, n, bits, stride=stride)
            assert torch.equal(got, expected)


def test_a_stride_counts_one_block_of_a_group_and_goes_round():
    blocks = torch.arange(64, dtype=torch.uint8).repeat_interleave(512)
    packed = kernels.pack_symbols(blocks, 8)
    counts = kernels.symbol_counts(packed, len(blocks), 8, stride=16)
    assert counts.nonzero().flatten().tolist() == [0, 23, 46, 53]
    assert set(counts.tolist()) == {0, 512}


@pytest.mark.parametrize("bits", range(1, 9))
def test_context_counts_are_those_of_the_reference(bits):
    generator = torch.Generator().manual_seed(bits)
    for n, stride in itertools.product((0, 1, 511, 513, 20 * 512 + 9), (1, 16)):
        symbols = torch.randint(0, 1 << bits, (n,), generator=generator, dtype=torch.uint8)
        packed = kernels.pack_symbols(symbols, bits)
        with backend.use_backend("reference"):
            expected = kernels.context_counts(packed, n, bits, stride=stride)
        for isa in backend.usable_isas():
            with backend.use_backend("native", isa):
                assert torch.equal(kernels.context_counts(packed, n, bits, stride=stride), expected)


def test_a_context_is_the_four_highest_bits_of_the_symbol_before_in_the_block():
    symbols = torch.tensor([37, 5, *[0] * 510, 9, 63], dtype=torch.uint8)
    counts = kernels.context_counts(kernels.pack_symbols(symbols, 6), 514, 6)
    assert counts.shape == (16, 64)
    places = {(int(c), int(s)): int(counts[c, s]) for c, s in counts.nonzero()}
    assert places == {(0, 37): 1, (9, 5): 1, (1, 0): 1, (0, 0): 509, (0, 9): 1, (2, 63): 1}


def test_a_stride_below_one_is_refused():
    with pytest.raises(ConfigError, match=r"stride must be an integer from 1 to 2\*\*32, got 0"):
        kernels.symbol_counts(torch.empty(0, dtype=torch.uint8), 0, 4, stride=0)
