"""Prefix codes: the compiled kernels against the reference, byte for byte, and hostile payloads."""

from __future__ import annotations

import itertools
import random

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from slimgrad import kernels
from slimgrad.core.errors import ConfigError, FrameError
from slimgrad.kernels import backend
from slimgrad.kernels.reference.huffman import is_full_code, words_of
from slimgrad.theory import huffman_lengths

ISAS = backend.usable_isas()
needs_native = pytest.mark.skipif(
    not ISAS, reason="the C++ kernels were not built here, so there is nothing to compare"
)
CHUNK = 65536
SETTINGS = [(bits, False) for bits in range(1, 9)] + [(bits, True) for bits in range(1, 5)]


def symbols_of(n: int, bits: int, density: float, seed: int) -> torch.Tensor:
    generator = torch.Generator().manual_seed(seed)
    symbols = torch.randint(0, 1 << bits, (n,), generator=generator)
    return (symbols * (torch.rand(n, generator=generator) < density)).to(torch.uint8)


def encoded(packed: torch.Tensor, n: int, bits: int, pairs: bool) -> torch.Tensor:
    counts = kernels.huffman_count(packed, n, bits, pairs=pairs)
    lengths = huffman_lengths(counts.numpy(), 12) if n else ()
    payload = kernels.huffman_encode(packed, n, bits, lengths, pairs=pairs)
    assert payload is not None
    return payload


def decoded(payload: torch.Tensor, n: int, bits: int, pairs: bool) -> list[int] | None:
    try:
        return kernels.huffman_decode(payload, n, bits, pairs=pairs).tolist()
    except FrameError as refusal:
        if not 0 <= refusal.position <= len(payload):
            raise
        return None


def test_words_that_are_known():
    # The example of RFC 1951, section 3.2.2: lengths 3, 3, 3, 3, 3, 2, 4, 4.
    words = words_of((3, 3, 3, 3, 3, 2, 4, 4))
    expected = ["010", "011", "100", "101", "110", "00", "1110", "1111"]
    assert [words[unit] for unit in range(8)] == expected
    assert is_full_code((3, 3, 3, 3, 3, 2, 4, 4))
    assert not is_full_code((13, 1))
    assert not is_full_code((0, 2))


@needs_native
@pytest.mark.parametrize(("bits", "pairs"), SETTINGS)
def test_every_instruction_set_gives_the_bytes_of_the_reference(bits, pairs):
    cases = list(itertools.product([0, 1, 2, 3, 511, 512, 513, 1500], (0.0, 0.05, 1.0)))
    if bits == 4:
        cases += [(CHUNK, 1.0), (CHUNK + 1, 1.0)]
    for n, density in cases:
        symbols = symbols_of(n, bits, density, seed=n + bits)
        packed = kernels.pack_symbols(symbols, bits)
        with backend.use_backend("reference"):
            counts = kernels.huffman_count(packed, n, bits, pairs=pairs)
            expected = encoded(packed, n, bits, pairs)
            if n < 2000:
                assert torch.equal(kernels.huffman_decode(expected, n, bits, pairs=pairs), packed)
        least, most = kernels.huffman_bounds(n, bits, pairs=pairs)
        assert least <= len(expected) <= most
        for isa in ISAS:
            with backend.use_backend("native", isa):
                assert torch.equal(kernels.huffman_count(packed, n, bits, pairs=pairs), counts)
                assert torch.equal(encoded(packed, n, bits, pairs), expected)
                assert torch.equal(kernels.huffman_decode(expected, n, bits, pairs=pairs), packed)


@needs_native
@pytest.mark.parametrize("every", [2, 3, 100])
def test_counting_some_blocks(every):
    packed = kernels.pack_symbols(symbols_of(5000, 4, 0.7, seed=1), 4)
    with backend.use_backend("reference"):
        expected = kernels.huffman_count(packed, 5000, 4, pairs=True, every=every)
    assert torch.equal(kernels.huffman_count(packed, 5000, 4, pairs=True, every=every), expected)
    blocks = [256] * 9 + [(5000 - 9 * 512) // 2]
    assert int(expected.sum()) == sum(blocks[::every])


@pytest.mark.parametrize("kernel_backend", ["reference", "auto"])
def test_a_unit_without_a_word_is_noticed_wherever_it_stands(kernel_backend):
    for n, place in ((1, 0), (700, 0), (700, 400), (700, 699)):
        symbols = torch.ones(n, dtype=torch.uint8)
        symbols[place] = 3
        packed = kernels.pack_symbols(symbols, 2)
        with backend.use_backend(kernel_backend):
            assert kernels.huffman_encode(packed, n, 2, (1, 1, 0, 0), pairs=False) is None
            assert kernels.huffman_encode(packed, n, 2, (0, 1, 2, 2), pairs=False) is not None


@needs_native
def test_a_payload_longer_than_the_packed_symbols_is_written_whole():
    # The worst words for these symbols: 12 bits for the only unit of three chunks.
    n = 3 * CHUNK
    packed = kernels.pack_symbols(torch.full((n,), 255, dtype=torch.uint8), 8)
    lengths = [0] * 243 + [*range(1, 13), 12]
    payload = kernels.huffman_encode(packed, n, 8, lengths, pairs=False)
    assert payload is not None
    assert len(payload) == kernels.huffman_bounds(n, 8, pairs=False)[1]
    assert torch.equal(kernels.huffman_decode(payload, n, 8, pairs=False), packed)


@needs_native
def test_damaged_payloads_are_read_as_the_reference_reads_them():
    rng = random.Random(20240302)
    accepted = refused = 0
    for trial in range(1200):
        bits, pairs = rng.choice(SETTINGS)
        n = rng.choice([0, 1, 5, 40, 600])
        packed = kernels.pack_symbols(symbols_of(n, bits, rng.random(), seed=trial), bits)
        content = bytearray(encoded(packed, n, bits, pairs).tolist())
        for _ in range(rng.choice([1, 2])):
            kind = rng.randrange(4)
            if kind < 2 and content:
                content[rng.randrange(len(content))] ^= 1 << rng.randrange(8)
            elif kind == 2 and content:
                del content[rng.randrange(len(content)) :]
            else:
                content += rng.randbytes(rng.randrange(1, 3))
        payload = torch.tensor(list(content), dtype=torch.uint8)
        with backend.use_backend("reference"):
            expected = decoded(payload, n, bits, pairs)
        for isa in ISAS:
            with backend.use_backend("native", isa):
                assert decoded(payload, n, bits, pairs) == expected
        accepted += expected is not None
        refused += expected is None
    assert min(accepted, refused) > 50


@settings(max_examples=100, deadline=None)
@given(st.sampled_from(SETTINGS), st.integers(0, 1100), st.binary(max_size=300))
def test_any_bytes_are_refused_or_decode_alike_again(setting, n, content):
    bits, pairs = setting
    packed = decoded(torch.tensor(list(content), dtype=torch.uint8), n, bits, pairs)
    if packed is not None:
        again = torch.tensor(packed, dtype=torch.uint8)
        payload = encoded(again, n, bits, pairs)
        assert decoded(payload, n, bits, pairs) == packed
        assert len(payload) <= len(content)


@pytest.mark.parametrize("kernel_backend", ["reference", "auto"])
def test_what_is_no_payload_is_refused(kernel_backend):
    packed = kernels.pack_symbols(torch.tensor([1, 2, 1], dtype=torch.uint8), 2)
    good = encoded(packed, 3, 2, True)
    table = 8

    def refused(payload: torch.Tensor, n: int = 3) -> None:
        with pytest.raises(FrameError):
            kernels.huffman_decode(payload, n, 2, pairs=True)

    def patched(position: int, value: int) -> torch.Tensor:
        payload = good.clone()
        payload[position] = value
        return payload

    with backend.use_backend(kernel_backend):
        assert torch.equal(kernels.huffman_decode(good, 3, 2, pairs=True), packed)
        refused(good, n=0)
        refused(good[:20])  # within the sizes
        refused(patched(0, 0xFF))  # lengths of 15 bits
        refused(patched(table, 200))  # a stream behind the end
        refused(patched(table, 0))  # a stream that ends within a word
        refused(torch.cat([good, good[:1]]))  # something behind the streams
        lone = torch.tensor([0x10] + [0] * 7 + [1, 0] + [0] * 14 + [0x80], dtype=torch.uint8)
        refused(lone, n=1)  # a 1 where the only word is 0
        lone[-1] = 0
        assert kernels.huffman_decode(lone, 1, 2, pairs=True).tolist() == [1]
        lone[:8] = torch.tensor([0, 0, 0x10, 0, 0, 0, 0, 0])
        refused(lone, n=1)  # unit 5 has a second symbol, and there is one symbol


def test_arguments():
    packed = torch.zeros(2, dtype=torch.uint8)
    with pytest.raises(ConfigError, match="at most 4 bits, got 5"):
        kernels.huffman_count(torch.zeros(3, dtype=torch.uint8), 4, 5, pairs=True)
    with pytest.raises(ConfigError, match="every must be an integer >= 1, got 0"):
        kernels.huffman_count(packed, 4, 4, pairs=True, every=0)
    with pytest.raises(ConfigError, match="packed must have 3 elements"):
        kernels.huffman_encode(packed, 5, 4, (1,) * 16, pairs=False)
    with pytest.raises(ConfigError, match="16 lengths of a full prefix code"):
        kernels.huffman_encode(packed, 4, 4, (1,) * 16, pairs=False)
    with pytest.raises(ConfigError, match="payload must be flat"):
        kernels.huffman_decode(packed.float(), 4, 4, pairs=True)
