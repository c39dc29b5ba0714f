"""The Elias codes: known words, and the compiled kernels against the reference, byte for byte."""

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
from slimgrad.kernels.elias import CODES
from slimgrad.kernels.reference.elias import word_of
from slimgrad.theory import delta_bits, gamma_bits, omega_bits

ISAS = backend.usable_isas()
needs_native = pytest.mark.skipif(
    not ISAS, reason="the C++ kernels were not built here, so there is nothing to compare"
)
SEGMENT = kernels.ELIAS_SEGMENT


def sparse_symbols(n: int, bits: int, density: float, seed: int) -> torch.Tensor:
    generator = torch.Generator().manual_seed(seed)
    symbols = torch.randint(0, 1 << bits, (n,), generator=generator)
    return (symbols * (torch.rand(n, generator=generator) < density)).to(torch.uint8)


def decoded(payload: torch.Tensor, n: int, bits: int, code: str) -> list[int] | None:
    try:
        return kernels.elias_decode(payload, n, bits, code).tolist()
    except FrameError as refusal:
        if not 0 <= refusal.position <= len(payload):
            raise
        return None


def test_words_that_are_known():
    # Elias (1975): table of the recursive code; gamma and delta by their definition.
    omega = {1: "0", 2: "100", 3: "110", 4: "101000", 5: "101010", 8: "1110000", 15: "1111110"}
    assert {k: word_of("omega", k) for k in omega} == omega
    assert word_of("omega", 16) == "10100100000"
    assert [word_of("gamma", k) for k in (1, 2, 3, 4)] == ["1", "010", "011", "00100"]
    assert [word_of("delta", k) for k in (1, 2, 3, 4)] == ["1", "0100", "0101", "01100"]
    lengths = {"gamma": gamma_bits, "delta": delta_bits, "omega": omega_bits}
    for k in [*range(1, 300), 65535, 65536, 65537, 131071]:
        for code, length in lengths.items():
            assert len(word_of(code, k)) == length(k)


@needs_native
@pytest.mark.parametrize("bits", range(1, 9))
def test_every_instruction_set_gives_the_bytes_of_the_reference(bits):
    sizes = [0, 1, 2, 511, 512, 513, 1500]
    if bits == 4:
        sizes += [SEGMENT - 1, SEGMENT, SEGMENT + 1]
    for n, density, code in itertools.product(sizes, (0.0, 0.01, 0.5, 1.0), CODES):
        if n > 2000 and density > 0.4:
            continue  # the reference takes long
        symbols = sparse_symbols(n, bits, density, seed=n + bits)
        packed = kernels.pack_symbols(symbols, bits)
        with backend.use_backend("reference"):
            expected = kernels.elias_encode(packed, n, bits, code)
            if n < 2000:
                assert torch.equal(kernels.elias_decode(expected, n, bits, code), packed)
        assert len(expected) <= kernels.elias_bytes_bound(n, bits, code)
        for isa in ISAS:
            with backend.use_backend("native", isa):
                assert torch.equal(kernels.elias_encode(packed, n, bits, code), expected)
                assert torch.equal(kernels.elias_decode(expected, n, bits, code), packed)


@needs_native
def test_several_dense_segments():
    n = 3 * SEGMENT + 700
    symbols = sparse_symbols(n, 4, 0.9, seed=5)
    packed = kernels.pack_symbols(symbols, 4)
    payload = kernels.elias_encode(packed, n, 4, "omega")
    assert torch.equal(kernels.elias_decode(payload, n, 4, "omega"), packed)


@needs_native
def test_damaged_payloads_are_read_as_the_reference_reads_them():
    rng = random.Random(20240301)
    accepted = refused = 0
    for trial in range(1500):
        bits, n = rng.choice([1, 2, 4, 8]), rng.choice([0, 1, 5, 20, 600])
        code = rng.choice(CODES)
        packed = kernels.pack_symbols(sparse_symbols(n, bits, rng.random(), seed=trial), bits)
        content = bytearray(kernels.elias_encode(packed, n, bits, code).tolist())
        for _ in range(rng.choice([1, 2])):
            kind = rng.randrange(3)
            if kind == 0 and content:
                content[rng.randrange(len(content))] ^= 1 << rng.randrange(8)
            elif kind == 1 and content:
                del content[-1]
            else:
                content += rng.randbytes(rng.randrange(1, 3))
        payload = torch.tensor(list(content), dtype=torch.uint8)
        with backend.use_backend("reference"):
            expected = decoded(payload, n, bits, code)
        for isa in ISAS:
            with backend.use_backend("native", isa):
                assert decoded(payload, n, bits, code) == expected
        accepted += expected is not None
        refused += expected is None
    assert min(accepted, refused) > 100


@settings(max_examples=100, deadline=None)
@given(st.sampled_from(CODES), st.integers(1, 8), st.integers(0, 1100), st.binary(max_size=200))
def test_any_bytes_are_refused_or_are_what_the_encoder_writes(code, bits, n, content):
    payload = torch.tensor(list(content), dtype=torch.uint8)
    packed = decoded(payload, n, bits, code)
    if packed is not None:
        again = torch.tensor(packed, dtype=torch.uint8)
        assert torch.equal(kernels.elias_encode(again, n, bits, code), payload)


@pytest.mark.parametrize("kernel_backend", ["reference", "auto"])
def test_what_is_no_payload_is_refused(kernel_backend):
    def refused(digits: str, n: int, code: str) -> None:
        octets = [int(digits[i : i + 8].ljust(8, "0"), 2) for i in range(0, len(digits), 8)]
        with pytest.raises(FrameError):
            kernels.elias_decode(torch.tensor(octets, dtype=torch.uint8), n, 4, code)

    with backend.use_backend(kernel_backend):
        refused("", 1, "omega")  # nothing there
        refused("100" + "00000" + "0" * 8, 1, "omega")  # a byte too many
        refused("100" + "01000", 1, "omega")  # a bit behind the end
        refused("110" + "00000", 1, "omega")  # a gap beyond the end
        refused("0" + "0" + "1110010" + "100", 2, "omega")  # level 9 of 8
        refused("0" + "0" + "1110000" + "100", 2, "omega")  # magnitude 0 without a sign
        refused("0" * 40, 20, "gamma")  # a number of too many digits
        refused("00001" + "0010" + "0" * 20, 20, "delta")  # 18 digits
        refused("11" + "111" + "1" * 40, 20, "omega")  # a number of too many digits


def test_arguments():
    packed = torch.zeros(2, dtype=torch.uint8)
    with pytest.raises(ConfigError, match="did you mean 'gamma'"):
        kernels.elias_encode(packed, 4, 4, "gama")
    with pytest.raises(ConfigError, match="packed must have 3 elements"):
        kernels.elias_encode(packed, 5, 4, "gamma")
    with pytest.raises(ConfigError, match="did you mean 'omega'"):
        kernels.elias_decode(packed, 4, 4, "omeg")
    with pytest.raises(ConfigError, match="payload must be flat"):
        kernels.elias_decode(packed.float(), 4, 4, "omega")
