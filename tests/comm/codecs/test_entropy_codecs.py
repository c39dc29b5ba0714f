"""The entropy codecs: lossless, near the entropy, never without a code for a symbol."""

from __future__ import annotations

import math

import constriction
import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from slimgrad import kernels
from slimgrad.comm.codecs import Context, Rans
from slimgrad.comm.codecs.frequencies import frequencies, stride_of
from slimgrad.comm.quantizers import QSGDinf
from slimgrad.comm.quantizers.base import LevelGrid, Quantized
from slimgrad.core.errors import FrameError

CODECS = [Rans(), Context()]


def quantized_of(symbols: torch.Tensor, bits: int) -> Quantized:
    """Any symbols as a quantized vector in one bucket."""
    return Quantized(
        n=len(symbols),
        bits=bits,
        bucket_size=len(symbols) + 1,
        grid=LevelGrid("uniform", (0.0, 1.0)),
        norm="linf",
        scales=torch.ones(1),
        packed=kernels.pack_symbols(symbols.to(torch.uint8), bits),
        key=0,
    )


def entropy_of(symbols: torch.Tensor) -> float:
    shares = torch.bincount(symbols.long()).double() / len(symbols)
    return -float(sum(p * math.log2(p) for p in shares.tolist() if p > 0))


def drawn(n: int, ratio: float, seed: int = 0) -> torch.Tensor:
    """Symbols 0 to 15 with probabilities in the proportion 1, ratio, ratio**2, ..."""
    weights = ratio ** torch.arange(16, dtype=torch.float64)
    generator = torch.Generator().manual_seed(seed)
    edges = (weights / weights.sum()).cumsum(0)
    return torch.bucketize(torch.rand(n, generator=generator, dtype=torch.float64), edges[:-1])


@pytest.mark.parametrize("codec", CODECS, ids=lambda c: c.name)
@settings(max_examples=60, deadline=None)
@given(
    bits=st.integers(1, 8),
    n=st.sampled_from([0, 1, 2, 15, 127, 128, 129, 511, 512, 513, 1500]),
    kind=st.sampled_from(["zeros", "one value", "two values", "any", "quantized"]),
    seed=st.integers(0, 2**32),
)
def test_any_symbols_come_back(codec, bits, n, kind, seed):
    generator = torch.Generator().manual_seed(seed)
    any_symbols = torch.randint(0, 1 << bits, (n,), generator=generator, dtype=torch.uint8)
    if kind == "quantized" and bits > 1:
        vector = torch.randn(n, generator=generator)
        quantized = QSGDinf(bits=bits, bucket_size=64).quantize(vector, key=seed)
    else:
        most = (1 << bits) - 1
        symbols = {
            "zeros": torch.zeros_like(any_symbols),
            "one value": torch.full_like(any_symbols, most),
            "two values": (any_symbols & 1) * most,
        }.get(kind, any_symbols)
        quantized = quantized_of(symbols, bits)
    payload = codec.encode(quantized)
    assert payload.dtype == torch.uint8
    least, most = codec.payload_bounds(n, bits)
    assert least <= len(payload) <= most
    assert torch.equal(codec.decode(payload, n, bits), quantized.packed)


@pytest.mark.parametrize("codec", CODECS, ids=lambda c: c.name)
def test_a_payload_of_another_length_is_refused(codec):
    payload = codec.encode(quantized_of(torch.ones(700), 4))
    for changed in (payload[:-2], torch.cat([payload, payload[-2:]])):
        with pytest.raises(FrameError, match="the chunks end at"):
            codec.decode(changed, 700, 4)


@pytest.mark.parametrize("codec", CODECS, ids=lambda c: c.name)
def test_symbols_the_sample_has_not_seen_have_a_code(codec):
    """One block of sixteen is looked at; these hold nothing of what the others do."""
    n = 1 << 20
    assert stride_of(n, 4) == stride_of(n, 4, 16) == 16
    symbols = torch.full((n // 512, 512), 9, dtype=torch.uint8)
    groups = torch.arange(n // 512 // 16)
    symbols[groups * 16 + groups * 7 % 16] = 0
    quantized = quantized_of(symbols.flatten(), 4)
    payload = codec.encode(quantized)
    assert len(payload) <= codec.payload_bounds(n, 4)[1]
    assert torch.equal(codec.decode(payload, n, 4), quantized.packed)


@pytest.mark.parametrize("ratio", [0.045, 0.3, 0.6, 0.85])
def test_size_is_near_the_entropy(ratio):
    n = 1 << 20
    symbols = drawn(n, ratio)
    entropy = entropy_of(symbols)
    assert 0.25 < entropy < 3.9
    for codec in CODECS:
        size = 8 * len(codec.encode(quantized_of(symbols, 4))) / n
        # The tables of the contexts are 1/256 bit a symbol here.
        assert entropy <= size <= entropy + (0.02 if codec.name == "rans" else 0.025)


@pytest.mark.parametrize("codec", CODECS, ids=lambda c: c.name)
@pytest.mark.parametrize("ratio", [0.3, 0.8])
def test_expected_bits_are_those_of_a_chunk(codec, ratio):
    n = 1 << 18  # one chunk
    symbols = drawn(n, ratio)
    shares = torch.bincount(symbols, minlength=16).double() / n
    size = 8 * len(codec.encode(quantized_of(symbols, 4))) / n
    assert codec.expected_bits(shares, 4) == pytest.approx(size, abs=0.004)


def test_context_takes_what_a_neighbour_tells():
    """A walk whose steps are -1, 0 and 1: log2(3) bits, where symbols alone say nothing."""
    n = 1 << 18
    steps = torch.randint(0, 3, (n,), generator=torch.Generator().manual_seed(1)) - 1
    quantized = quantized_of(steps.cumsum(0) % 16, 4)
    alone, behind = (8 * len(codec.encode(quantized)) / n for codec in CODECS)
    assert alone > 4.0
    assert behind == pytest.approx(math.log2(3), abs=0.06)


def test_size_is_that_of_another_implementation():
    """constriction's coder of 24-bit probabilities has no states to spare and no table."""
    n = 1 << 18
    symbols = drawn(n, 0.5)
    shares = (torch.bincount(symbols, minlength=16).double() / n).numpy()
    model = constriction.stream.model.Categorical(shares, perfect=False)
    coder = constriction.stream.stack.AnsCoder()
    coder.encode_reverse(symbols.numpy().astype(np.int32), model)
    theirs = coder.num_valid_bits()
    ours = 8 * len(Rans().encode(quantized_of(symbols, 4)))
    states_and_table = 32 * 128 + 8 * (32 + 4)
    assert theirs < ours < 1.003 * theirs + states_and_table


@settings(max_examples=100, deadline=None)
@given(
    st.lists(st.lists(st.integers(0, 2**40), min_size=16, max_size=16), min_size=1, max_size=4),
    st.booleans(),
)
def test_frequencies_add_up_and_leave_out_nothing_that_occurs(rows, every_symbol):
    counts = torch.tensor(rows)
    found = frequencies(counts, every_symbol=every_symbol)
    assert (found.sum(1) == 4096).all()
    assert (found[counts > 0] >= 1).all()
    assert (found >= int(every_symbol)).all()


def test_frequencies_are_the_best_there_are():
    """Moving one unit from any symbol to any other does not make the symbols shorter."""
    counts = torch.tensor([100003, 20011, 977, 41, 3, 1, 777, 90001])
    (found,) = frequencies(counts[None], every_symbol=False).tolist()

    def bits(table):
        return sum(c * math.log2(4096 / f) for c, f in zip(counts.tolist(), table, strict=True))

    best = bits(found)
    for giver in range(8):
        for taker in range(8):
            moved = list(found)
            moved[giver] -= 1
            moved[taker] += 1
            # What a unit gains is taken by a formula that is right to a share of a unit.
            assert moved[giver] == 0 or bits(moved) > best * (1 - 1e-5)
