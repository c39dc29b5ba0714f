"""The Elias codecs: lossless, exactly as long as theory says, within the bounds they state."""

import itertools

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from slimgrad import kernels
from slimgrad.comm.codecs import EliasDelta, EliasGamma, EliasOmega
from slimgrad.comm.quantizers import NUQSGD, QSGD
from slimgrad.comm.quantizers.base import LevelGrid, Quantized
from slimgrad.core.errors import FrameError

ELIAS = [EliasGamma(), EliasDelta(), EliasOmega()]
SEGMENT = 65536


def quantized(symbols: torch.Tensor, bits: int) -> Quantized:
    m = max(2 ** (bits - 1) - 1, 1)
    return Quantized(
        n=len(symbols),
        bits=bits,
        bucket_size=512,
        grid=LevelGrid("uniform", tuple(j / m for j in range(m + 1))),
        norm="l2",
        scales=torch.ones(-(-len(symbols) // 512)),
        packed=kernels.pack_symbols(symbols, bits),
        key=0,
    )


def bits_by_the_formula(codec, symbols: list[int], bits: int) -> int:
    total, sign_bit = 0, 1 << (bits - 1)
    for first in range(0, len(symbols), SEGMENT):
        part, last = symbols[first : first + SEGMENT], 0
        for place, symbol in enumerate(part, start=1):
            if symbol:
                total += codec.word_bits(place - last) + 1
                total += codec.word_bits(symbol % sign_bit or sign_bit)
                last = place
        total += codec.word_bits(len(part) + 1 - last)
    return total


@settings(max_examples=60, deadline=None)
@given(st.sampled_from(ELIAS), st.integers(1, 8), st.data())
def test_lossless_and_as_long_as_the_formula(codec, bits, data):
    symbols = data.draw(st.lists(st.integers(0, 2**bits - 1) | st.just(0), max_size=1100))
    q = quantized(torch.tensor(symbols, dtype=torch.uint8), bits)
    payload = codec.encode(q)
    least, most = codec.payload_bounds(len(symbols), bits)
    assert least <= payload.numel() <= most
    assert payload.numel() == -(-bits_by_the_formula(codec, symbols, bits) // 8)
    assert torch.equal(codec.decode(payload, len(symbols), bits), q.packed)


@pytest.mark.parametrize("codec", ELIAS)
def test_an_example_by_hand(codec):
    symbols = torch.tensor([0, 0b1011, 0, 0b0001], dtype=torch.uint8)
    words = {  # gap 2, minus, level 3, gap 2, plus, level 1, gap 1
        "elias_gamma": "0101011010011",
        "elias_delta": "0100101010100011",
        "elias_omega": "1001110100000",
    }[codec.name]
    payload = codec.encode(quantized(symbols, 4))
    assert "".join(f"{octet:08b}" for octet in payload.tolist()) == words.ljust(16, "0")


@pytest.mark.parametrize("codec", ELIAS)
def test_vectors_with_nothing_in_them(codec):
    for n in (0, 1, 512, SEGMENT, SEGMENT + 1, 3 * SEGMENT):
        q = quantized(torch.zeros(n, dtype=torch.uint8), 4)
        payload = codec.encode(q)
        assert payload.numel() == codec.payload_bounds(n, 4)[0]
        assert torch.equal(codec.decode(payload, n, 4), q.packed)
    assert codec.payload_bounds(0, 4) == (0, 0)


@pytest.mark.parametrize("codec", ELIAS)
@pytest.mark.parametrize("bits", [1, 2])
def test_the_bounds_hold_for_every_short_vector(codec, bits):
    for n in range(1, 7 if bits == 2 else 11):
        sizes = {
            bits_by_the_formula(codec, list(symbols), bits)
            for symbols in itertools.product(range(2**bits), repeat=n)
        }
        least, most = codec.payload_bounds(n, bits)
        assert least == -(-min(sizes) // 8)
        assert most == -(-max(sizes) // 8)


@pytest.mark.parametrize("codec", ELIAS)
@pytest.mark.parametrize("zero", [0.0, 0.3, 0.99, 1.0])
def test_expected_bits_are_those_of_independent_symbols(codec, zero):
    # Four standard deviations and more of the mean of 65,536 symbols, by far.
    generator = torch.Generator().manual_seed(1)
    probabilities = torch.tensor([zero, *([(1 - zero) / 15] * 15)], dtype=torch.float64)
    symbols = torch.multinomial(probabilities, SEGMENT, True, generator=generator)
    payload = codec.encode(quantized(symbols.to(torch.uint8), 4))
    expected = codec.expected_bits(probabilities, 4)
    assert 8 * payload.numel() / SEGMENT == pytest.approx(expected, rel=0.05, abs=2e-4)


def test_sparse_vectors_cost_less_than_a_fixed_width_and_dense_ones_more():
    vector = torch.randn(40000, generator=torch.Generator().manual_seed(3))
    sparse = QSGD(bits=4, bucket_size=8192).quantize(vector, key=1)
    dense = NUQSGD(bits=4, bucket_size=128).quantize(vector, key=1)
    for codec in ELIAS:
        assert codec.encode(sparse).numel() < 0.3 * sparse.packed.numel()
        assert codec.encode(dense).numel() > dense.packed.numel()


@pytest.mark.parametrize("codec", ELIAS)
def test_a_payload_of_another_vector_is_refused(codec):
    payload = codec.encode(quantized(torch.ones(10, dtype=torch.uint8), 4))
    with pytest.raises(FrameError):
        codec.decode(payload, 11, 4)
    with pytest.raises(FrameError):
        codec.decode(payload[:-1], 10, 4)
