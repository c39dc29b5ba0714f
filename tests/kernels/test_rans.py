"""Entropy-coded symbols: lossless, the same bytes everywhere, and safe to read whatever arrives."""

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
SIZES = [1, 2, 127, 128, 129, 511, 512, 513, 700, 4096 + 7]


def symbols_of(n: int, bits: int, spread: float = 0.2, seed: int = 0) -> torch.Tensor:
    """Packed symbols, low ones far more frequent; ``spread`` 0 for all equal."""
    generator = torch.Generator().manual_seed(seed)
    most = (1 << bits) - 1
    drawn = (torch.randn(n, generator=generator).abs() * spread * most).clamp(max=most)
    return kernels.pack_symbols(drawn.to(torch.uint8), bits)


def table_of(packed: torch.Tensor, n: int, bits: int) -> torch.Tensor:
    """Frequencies near the proportions, at least 1 for what occurs."""
    counts = kernels.symbol_counts(packed, n, bits)
    found = counts * 3800 // counts.sum() + (counts > 0)
    found[found.argmax()] += 4096 - found.sum()
    return found


def assert_same_everywhere(packed, n, bits, table, threads=(1,)) -> torch.Tensor:
    with backend.use_backend("reference"):
        expected = kernels.rans_encode(packed, n, bits, table)
        assert torch.equal(kernels.rans_decode(expected, n, bits), packed)
    before = torch.get_num_threads()
    try:
        for isa, count, serial in itertools.product(ISAS, threads, (False, True)):
            torch.set_num_threads(count)
            with backend.use_backend("native", isa):
                got = kernels.rans_encode(packed, n, bits, table, serial=serial)
                assert torch.equal(got, expected), f"{n} symbols of {bits} bits on {isa}"
                assert torch.equal(kernels.rans_decode(got, n, bits, serial=serial), packed)
    finally:
        torch.set_num_threads(before)
    return expected


@pytest.mark.parametrize("bits", range(1, 9))
def test_sizes_and_widths(bits):
    for n, spread in itertools.product(SIZES, (0.0, 0.03, 0.3)):
        packed = symbols_of(n, bits, spread, seed=n)
        assert_same_everywhere(packed, n, bits, table_of(packed, n, bits))


@needs_native
@pytest.mark.parametrize("bits", [3, 4, 8])
def test_several_chunks_and_threads(bits):
    for n in (CHUNK, CHUNK + 1, 2 * CHUNK + 700):
        packed = symbols_of(n, bits)
        assert_same_everywhere(packed, n, bits, table_of(packed, n, bits), threads=(1, 2))


def test_symbols_that_the_frequencies_make_dear():
    """Twelve bits a symbol, for which the first room is not enough."""
    n = CHUNK + 3000
    packed = kernels.pack_symbols(torch.full((n,), 5, dtype=torch.uint8), 4)
    table = torch.ones(16, dtype=torch.int64)
    table[0] = 4081
    payload = assert_same_everywhere(packed, n, 4, table, threads=(1, 2))
    assert 1.5 * n < len(payload) < 1.51 * n + 1100


def test_one_symbol_takes_no_words():
    n = 2 * CHUNK
    packed = kernels.pack_symbols(torch.full((n,), 3, dtype=torch.uint8), 4)
    payload = assert_same_everywhere(packed, n, 4, table_of(packed, n, 4))
    assert len(payload) == 32 + 2 * (4 + 512)


def test_no_symbols_are_no_bytes():
    nothing = torch.empty(0, dtype=torch.uint8)
    table = torch.tensor([4096, 0])
    assert kernels.rans_encode(nothing, 0, 1, table).numel() == 0
    assert kernels.rans_decode(nothing, 0, 1).numel() == 0
    with pytest.raises(FrameError, match="no symbols take no bytes, not 1"):
        kernels.rans_decode(torch.zeros(1, dtype=torch.uint8), 0, 1)


def test_a_symbol_without_frequency_is_refused():
    packed = kernels.pack_symbols(torch.tensor([0, 1], dtype=torch.uint8), 1)
    with pytest.raises(ConfigError, match="a symbol of frequency 0 occurs"):
        kernels.rans_encode(packed, 2, 1, torch.tensor([4096, 0]))


def test_frequencies_that_are_none_are_refused():
    packed = kernels.pack_symbols(torch.tensor([0, 1], dtype=torch.uint8), 1)
    for table in ([4095, 2], [4097, -1]):
        with pytest.raises(ConfigError, match="add up to 4096"):
            kernels.rans_encode(packed, 2, 1, torch.tensor(table))
    with pytest.raises(ConfigError, match="frequencies must have 2 elements, got 1"):
        kernels.rans_encode(packed, 2, 1, torch.tensor([4096]))


def outcome(payload: torch.Tensor, n: int, bits: int):
    """What a payload decodes to, or the place of the error."""
    try:
        return kernels.rans_decode(payload, n, bits).tolist()
    except FrameError as error:
        return error.position


def damaged(payload: torch.Tensor, rng: random.Random) -> torch.Tensor:
    changed = payload.clone()
    for _ in range(rng.choice([1, 2, 5])):
        changed[rng.randrange(len(changed))] = rng.randrange(256)
    kind = rng.randrange(6)
    if kind == 0:
        return changed[: rng.randrange(len(changed))]
    if kind == 1:
        return torch.cat([changed, torch.zeros(rng.choice([1, 2, 600]), dtype=torch.uint8)])
    return changed


@needs_native
def test_damaged_payloads_are_refused_alike():
    rng = random.Random(5)
    for bits, n in ((4, 3000), (2, 700), (8, 1100), (4, 60)):
        packed = symbols_of(n, bits)
        payload = kernels.rans_encode(packed, n, bits, table_of(packed, n, bits))
        for _ in range(60):
            data = damaged(payload, rng)
            with backend.use_backend("reference"):
                expected = outcome(data, n, bits)
            for isa in ISAS:
                with backend.use_backend("native", isa):
                    assert outcome(data, n, bits) == expected


@needs_native
def test_any_words_behind_a_right_table_are_survived():
    """The words run out, or are left, at any place."""
    n, bits = CHUNK + 5000, 4
    packed = symbols_of(n, bits)
    payload = kernels.rans_encode(packed, n, bits, table_of(packed, n, bits))
    words = int.from_bytes(bytes(payload[32:36].tolist()), "little")
    for cut in (1, 100, 128, 129, 5000, words):
        sizes = torch.tensor([words - cut], dtype=torch.int32).view(torch.uint8)
        end = 40 + 512 + 2 * words
        data = torch.cat([payload[:32], sizes, payload[36 : end - 2 * cut], payload[end:]])
        for isa in ISAS:
            with backend.use_backend("native", isa):
                assert outcome(data, n, bits) == 40


def test_cut_tables_and_sizes_are_named():
    packed = symbols_of(700, 4)
    payload = kernels.rans_encode(packed, 700, 4, table_of(packed, 700, 4))
    with pytest.raises(FrameError, match="the frequencies take 32 bytes, 31 are there"):
        kernels.rans_decode(payload[:31], 700, 4)
    with pytest.raises(FrameError, match="the sizes end at 36, 35 bytes are there") as caught:
        kernels.rans_decode(payload[:35], 700, 4)
    assert caught.value.position == 32
    with pytest.raises(FrameError, match="the chunks end at"):
        kernels.rans_decode(payload[:-2], 700, 4)
    with pytest.raises(ConfigError, match="payload must be flat"):
        kernels.rans_decode(payload.long(), 700, 4)
