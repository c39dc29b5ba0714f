"""Symbols coded behind the one before: lossless, the same bytes everywhere, safe to read."""

from __future__ import annotations

import itertools
import random

import pytest
import torch

from slimgrad import kernels
from slimgrad.core.errors import ConfigError, FrameError
from slimgrad.kernels import backend

CHUNK = 1 << 18
ISAS = backend.usable_isas()
needs_native = pytest.mark.skipif(
    not ISAS, reason="the C++ kernels were not built here, so there is nothing to compare"
)
# Lanes: one, a short one, 16, vectors and others, a whole round and another.
SIZES = [1, 511, 513, 700, 16 * 512, 33 * 512 + 5, 130 * 512 + 1]


def walk(n: int, bits: int, seed: int = 0) -> torch.Tensor:
    """Packed symbols that resemble their neighbours."""
    generator = torch.Generator().manual_seed(seed)
    steps = torch.randint(0, 3, (n,), generator=generator) - 1
    symbols = steps.cumsum(0).abs() % (1 << bits)
    return kernels.pack_symbols(symbols.to(torch.uint8), bits)


def tables_of(packed: torch.Tensor, n: int, bits: int) -> torch.Tensor:
    """Frequencies near the proportions, at least 1 for what occurs; flat."""
    counts = kernels.context_counts(packed, n, bits)
    counts[counts.sum(1) == 0, 0] = 1
    found = counts * 3800 // counts.sum(1, keepdim=True) + (counts > 0)
    rows = torch.arange(len(found))
    found[rows, found.argmax(1)] += 4096 - found.sum(1)
    return found.flatten()


def assert_same_everywhere(packed, n, bits, tables, threads=(1,)) -> torch.Tensor:
    with backend.use_backend("reference"):
        expected = kernels.context_encode(packed, n, bits, tables)
        assert torch.equal(kernels.context_decode(expected, n, bits), packed)
    before = torch.get_num_threads()
    try:
        for isa, count in itertools.product(ISAS, threads):
            torch.set_num_threads(count)
            with backend.use_backend("native", isa):
                got = kernels.context_encode(packed, n, bits, tables, serial=count == 1)
                assert torch.equal(got, expected), f"{n} symbols of {bits} bits on {isa}"
                assert torch.equal(kernels.context_decode(got, n, bits), packed)
    finally:
        torch.set_num_threads(before)
    return expected


@pytest.mark.parametrize("bits", range(1, 9))
def test_sizes_and_widths(bits):
    for n in SIZES if bits in (4, 5) else SIZES[2:6]:
        packed = walk(n, bits, seed=n)
        assert_same_everywhere(packed, n, bits, tables_of(packed, n, bits))


@needs_native
def test_several_chunks_and_threads():
    n, bits = CHUNK + 20 * 512 + 3, 4
    packed = walk(n, bits)
    assert_same_everywhere(packed, n, bits, tables_of(packed, n, bits), threads=(1, 2))


def test_symbols_that_the_tables_make_dear():
    """Twelve bits a symbol, for which the first room is not enough."""
    n = 40 * 512
    packed = kernels.pack_symbols(torch.full((n,), 5, dtype=torch.uint8), 4)
    tables = torch.ones(16, 16, dtype=torch.int64)
    tables[:, 0] = 4081
    payload = assert_same_everywhere(packed, n, 4, tables.flatten())
    assert len(payload) > 1.5 * n


def test_neighbours_that_say_all_take_no_words():
    symbols = (torch.arange(128 * 512) % 2).to(torch.uint8)
    packed = kernels.pack_symbols(symbols, 2)
    tables = torch.tensor([[0, 4096, 0, 0], [4096, 0, 0, 0]]).repeat(2, 1)
    tables[0] = torch.tensor([1, 4095, 0, 0])
    payload = assert_same_everywhere(packed, len(symbols), 2, tables.flatten())
    # The first of each block is a surprise of twelve bits, which a state takes in.
    assert len(payload) <= 32 + 4 + 4 * 128 + 2 * 128


def test_no_symbols_are_no_bytes():
    nothing = torch.empty(0, dtype=torch.uint8)
    assert kernels.context_encode(nothing, 0, 1, torch.tensor([4096, 0, 4096, 0])).numel() == 0
    assert kernels.context_decode(nothing, 0, 1).numel() == 0
    with pytest.raises(FrameError, match="no symbols take no bytes, not 1"):
        kernels.context_decode(torch.zeros(1, dtype=torch.uint8), 0, 1)


def test_a_symbol_without_frequency_is_refused():
    packed = kernels.pack_symbols(torch.tensor([0, 1], dtype=torch.uint8), 1)
    with pytest.raises(ConfigError, match="a symbol of frequency 0 occurs"):
        kernels.context_encode(packed, 2, 1, torch.tensor([4096, 0, 0, 4096]))
    with pytest.raises(ConfigError, match="add up to 4096 in each table"):
        kernels.context_encode(packed, 2, 1, torch.tensor([4000, 96, 4000, 95]))


def outcome(payload: torch.Tensor, n: int, bits: int):
    """What a payload decodes to, or the place of the error."""
    try:
        return kernels.context_decode(payload, n, bits).tolist()
    except FrameError as error:
        return error.position


@needs_native
def test_damaged_payloads_are_refused_alike():
    rng = random.Random(6)
    for bits, n in ((4, 33 * 512), (2, 700), (6, 1100)):
        packed = walk(n, bits)
        payload = kernels.context_encode(packed, n, bits, tables_of(packed, n, bits))
        head = 2 * min(16, 1 << bits) << bits
        for trial in range(9):
            data = payload.clone()
            for _ in range(rng.choice([1, 4])):
                # Most of the damage behind the tables, which are refused at once.
                data[rng.randrange(0 if trial % 8 == 0 else head, len(data))] = rng.randrange(256)
            if trial % 6 == 5:
                data = data[: rng.randrange(len(data))]
            with backend.use_backend("reference"):
                expected = outcome(data, n, bits)
            for isa in ISAS:
                with backend.use_backend("native", isa):
                    assert outcome(data, n, bits) == expected
