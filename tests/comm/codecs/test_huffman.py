"""The Huffman codecs: lossless, as short as their code promises, the best code there is."""

import constriction
import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from slimgrad import kernels
from slimgrad.comm.codecs import Huffman, HuffmanPairs, prefix
from slimgrad.comm.quantizers import NUQSGD, QSGDinf
from slimgrad.comm.quantizers.base import LevelGrid, Quantized
from slimgrad.core.errors import FrameError
from slimgrad.theory import entropy_bits

CODECS = [Huffman(), HuffmanPairs()]


def quantized(symbols: torch.Tensor, bits: int, grid: str = "uniform") -> Quantized:
    m = 2 ** (bits - 1) - 1
    levels = tuple(j / max(m, 1) for j in range(m + 1))
    if grid == "no_zero":
        levels = tuple((j + 1) / (m + 1) for j in range(m + 1))
    return Quantized(
        n=len(symbols),
        bits=bits,
        bucket_size=512,
        grid=LevelGrid(grid, levels),  # type: ignore[arg-type]
        norm="l2",
        scales=torch.ones(-(-len(symbols) // 512)),
        packed=kernels.pack_symbols(symbols, bits),
        key=0,
    )


@settings(max_examples=80, deadline=None)
@given(st.sampled_from(CODECS), st.integers(1, 8), st.data())
def test_lossless_on_any_symbols(codec, bits, data):
    alphabet = data.draw(st.lists(st.integers(0, 2**bits - 1), min_size=1, max_size=8))
    symbols = data.draw(st.lists(st.sampled_from(alphabet), max_size=1100))
    q = quantized(torch.tensor(symbols, dtype=torch.uint8), bits)
    payload = codec.encode(q)
    least, most = codec.payload_bounds(len(symbols), bits)
    assert least <= payload.numel() <= most
    assert torch.equal(codec.decode(payload, len(symbols), bits), q.packed)


@pytest.mark.parametrize("codec", CODECS)
def test_no_symbols_and_one(codec):
    empty = quantized(torch.empty(0, dtype=torch.uint8), 4)
    assert codec.encode(empty).numel() == 0
    assert codec.payload_bounds(0, 4) == (0, 0)
    assert codec.overhead_bytes(0, 4) == 0
    alone = quantized(torch.full((70000,), 5, dtype=torch.uint8), 4)
    payload = codec.encode(alone)
    assert payload.numel() == codec.payload_bounds(70000, 4)[0]
    assert torch.equal(codec.decode(payload, 70000, 4), alone.packed)


@pytest.mark.parametrize("codec", CODECS)
def test_size_is_that_of_an_independent_coder(codec):
    vector = torch.randn(20000, generator=torch.Generator().manual_seed(1))
    q = NUQSGD(bits=4).quantize(vector, key=1)
    symbols = kernels.unpack_symbols(q.packed, q.n, 4).numpy().astype(np.int64)
    units = symbols[::2] + 16 * symbols[1::2] if codec.is_paired(4) else symbols
    counts = np.bincount(units)
    tree = constriction.symbol.huffman.EncoderHuffmanTree(counts[counts > 0].astype(np.float32))
    index = np.cumsum(counts > 0) - 1
    coder = constriction.symbol.QueueEncoder()
    for unit in units:
        coder.encode_symbol(int(index[unit]), tree)
    total = coder.get_compressed()[1]
    body = 8 * (codec.encode(q).numel() - codec.overhead_bytes(q.n, 4))
    # The limit of 12 bits costs at most 1 in 1000 here; each of 8 streams ends within a byte.
    assert total <= body <= 1.001 * total + 8 * 8


def test_pairs_save_where_neighbours_depend_on_each_other():
    generator = torch.Generator().manual_seed(2)
    base = torch.randint(0, 16, (40000,), generator=generator).to(torch.uint8)
    q = quantized(base.repeat_interleave(2), 4)
    assert HuffmanPairs().encode(q).numel() < 0.55 * Huffman().encode(q).numel()


@pytest.mark.parametrize("codec", CODECS)
@pytest.mark.parametrize("bits", [2, 4, 6])
def test_expected_bits_are_those_of_independent_symbols(codec, bits):
    generator = torch.Generator().manual_seed(3)
    probabilities = torch.rand(1 << bits, generator=generator, dtype=torch.float64) ** 4
    probabilities /= probabilities.sum()
    n = 200_000
    symbols = torch.multinomial(probabilities, n, True, generator=generator).to(torch.uint8)
    body = codec.encode(quantized(symbols, bits)).numel() - codec.overhead_bytes(n, bits)
    expected = codec.expected_bits(probabilities, bits)
    assert 8 * body / n == pytest.approx(expected, rel=0.01)
    assert expected >= entropy_bits(probabilities.tolist())
    joint = torch.outer(probabilities, probabilities).flatten()
    assert codec.expected_bits_of_pairs(joint, bits) == pytest.approx(expected)


@pytest.mark.parametrize("codec", CODECS)
@pytest.mark.parametrize("quantizer", [NUQSGD(bits=4), QSGDinf(bits=3), QSGDinf(bits=5)])
def test_long_vectors_are_counted_in_part(codec, quantizer, monkeypatch):
    vector = torch.randn(50_000, generator=torch.Generator().manual_seed(4))
    q = quantizer.quantize(vector, key=1)
    whole = codec.encode(q).numel()
    monkeypatch.setattr(prefix, "COUNTED_BLOCKS", 20)
    payload = codec.encode(q)
    assert whole <= payload.numel() < 1.02 * whole
    assert torch.equal(codec.decode(payload, q.n, q.bits), q.packed)


@pytest.mark.parametrize("codec", CODECS)
def test_a_unit_outside_the_counted_part(codec, monkeypatch):
    monkeypatch.setattr(prefix, "COUNTED_BLOCKS", 2)
    symbols = torch.randint(0, 8, (5000,), generator=torch.Generator().manual_seed(5))
    symbols[600] = 8  # a minus zero, which no quantizer writes, in a block that is not counted
    q = quantized(symbols.to(torch.uint8), 4)
    counted = kernels.huffman_count(q.packed, 5000, 4, pairs=False, every=5)
    assert counted[8] == 0
    assert torch.equal(codec.decode(codec.encode(q), 5000, 4), q.packed)
    without_zero = quantized(symbols.to(torch.uint8), 4, grid="no_zero")
    assert torch.equal(codec.decode(codec.encode(without_zero), 5000, 4), q.packed)


def test_all_units_are_counted_where_few_of_many_occur(monkeypatch):
    q = quantized(torch.ones(5000, dtype=torch.uint8), 4)
    exact = HuffmanPairs().encode(q)
    monkeypatch.setattr(prefix, "COUNTED_BLOCKS", 2)
    assert torch.equal(HuffmanPairs().encode(q), exact)


@pytest.mark.parametrize("codec", CODECS)
def test_a_payload_of_another_vector_is_refused(codec):
    payload = codec.encode(quantized(torch.arange(10, dtype=torch.uint8), 4))
    for n in (40, 70000):
        with pytest.raises(FrameError):
            codec.decode(payload, n, 4)
