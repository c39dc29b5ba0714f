"""Packing is lossless, of the promised size, and lies where the format says."""

from __future__ import annotations

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from slimgrad import kernels
from slimgrad.core.errors import ConfigError
from slimgrad.kernels import backend
from slimgrad.kernels.reference.packing import plane_widths


@given(
    n=st.integers(0, 1600),
    bits=st.integers(1, 8),
    seed=st.integers(0, 2**31),
    name=st.sampled_from(["reference", "auto"]),
)
def test_round_trip(n, bits, seed, name):
    generator = torch.Generator().manual_seed(seed)
    symbols = torch.randint(0, 1 << bits, (n,), generator=generator, dtype=torch.uint8)
    with backend.use_backend(name):
        packed = kernels.pack_symbols(symbols, bits)
        assert len(packed) == kernels.packed_bytes(n, bits)
        assert torch.equal(kernels.unpack_symbols(packed, n, bits), symbols)


@pytest.mark.skipif(
    not backend.usable_isas(), reason="the C++ kernels were not built, there is nothing to compare"
)
@pytest.mark.parametrize("bits", range(1, 9))
@pytest.mark.parametrize("n", [0, 1, 511, 512, 513, 600_001])
def test_compiled_kernels_give_the_bytes_of_the_reference(bits, n):
    generator = torch.Generator().manual_seed(n)
    symbols = torch.randint(0, 1 << bits, (n,), generator=generator, dtype=torch.uint8)
    with backend.use_backend("reference"):
        expected = kernels.pack_symbols(symbols, bits)
    for isa in backend.usable_isas():
        for serial in (True, False):
            with backend.use_backend("native", isa):
                packed = kernels.pack_symbols(symbols, bits, serial=serial)
                unpacked = kernels.unpack_symbols(packed, n, bits, serial=serial)
            assert torch.equal(packed, expected)
            assert torch.equal(unpacked, symbols)


@pytest.mark.parametrize("bits", range(1, 9))
def test_a_block_lies_where_the_format_says(bits):
    """One component at a time: its bits, plane by plane, in the dword of its lane."""
    for e in (0, 1, 15, 16, 17, 255, 256, 511):
        symbols = torch.zeros(512, dtype=torch.uint8)
        symbols[e] = (1 << bits) - 1
        expected = bytearray(64 * bits)
        slot, lane, start = e // 16, e % 16, 0
        for width in plane_widths(bits):
            dword = slot // (32 // width) * 16 + lane
            ones = ((1 << width) - 1) << (slot % (32 // width) * width)
            place = start + 4 * dword
            expected[place : place + 4] = ones.to_bytes(4, "little")
            start += 512 * width // 8
        for name in ("reference", "auto"):
            with backend.use_backend(name):
                assert bytes(kernels.pack_symbols(symbols, bits).tolist()) == bytes(expected)


@pytest.mark.parametrize("bits", range(1, 9))
def test_a_tail_is_a_bit_string(bits):
    symbols = [(5 * e + 1) % (1 << bits) for e in range(37)]
    number = sum(symbol << (bits * e) for e, symbol in enumerate(symbols))
    with backend.use_backend("reference"):
        packed = kernels.pack_symbols(torch.tensor(symbols, dtype=torch.uint8), bits)
    assert bytes(packed.tolist()) == number.to_bytes((37 * bits + 7) // 8, "little")


def test_bits_of_a_width_are_planes_of_powers_of_two():
    widths = {bits: plane_widths(bits) for bits in range(1, 9)}
    assert widths == {1: [1], 2: [2], 3: [2, 1], 4: [4], 5: [4, 1], 6: [4, 2], 7: [4, 2, 1], 8: [8]}


def test_what_does_not_fit_is_refused():
    symbols = torch.tensor([1, 8], dtype=torch.uint8)
    with pytest.raises(ConfigError, match="symbol 8 does not fit in 3 bits"):
        kernels.pack_symbols(symbols, 3)
    with pytest.raises(ConfigError, match="bits must be an integer from 1 to 8, got 9"):
        kernels.pack_symbols(symbols, 9)
    with pytest.raises(ConfigError, match="packed must have 3 elements, got 2"):
        kernels.unpack_symbols(symbols, 5, 4)
    with pytest.raises(ConfigError, match=r"symbols must be flat, torch\.uint8"):
        kernels.pack_symbols(symbols.long(), 4)
    with pytest.raises(ConfigError, match="n must be an integer >= 0, got -1"):
        kernels.packed_bytes(-1, 4)
