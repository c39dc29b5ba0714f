import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from slimgrad import kernels
from slimgrad.comm.codecs import CODECS, Fixed, Raw, codec_with_id
from slimgrad.comm.quantizers import QSGDinf
from slimgrad.core.errors import ConfigError, FrameError


def test_registry_and_numbers_on_the_wire():
    assert list(CODECS) == ["context", "fixed", "rans", "raw"]
    numbers = {name: CODECS.get(name).code_id for name in CODECS}
    assert numbers == {"raw": 0, "fixed": 1, "rans": 2, "context": 3}
    for name in CODECS:
        assert CODECS.get(name).name == name
        found = codec_with_id(numbers[name])
        assert found is not None
        assert found.name == name
    assert codec_with_id(200) is None
    with pytest.raises(ConfigError, match="did you mean 'fixed'"):
        CODECS.get("fixd")


@settings(max_examples=60, deadline=None)
@given(st.integers(2, 8), st.sampled_from([0, 1, 15, 511, 512, 513, 1025, 1500]), st.data())
def test_codecs_are_lossless(bits, n, data):
    seed = data.draw(st.integers(0, 2**32))
    vector = torch.randn(n, generator=torch.Generator().manual_seed(seed))
    quantized = QSGDinf(bits=bits, bucket_size=64).quantize(vector, key=seed)
    for codec in (Fixed(), Raw()):
        payload = codec.encode(quantized)
        assert payload.dtype == torch.uint8
        assert codec.payload_bounds(n, bits) == (payload.numel(), payload.numel())
        assert torch.equal(codec.decode(payload, n, bits), quantized.packed)


def test_expected_bits():
    probabilities = torch.full((16,), 1 / 16)
    assert Fixed().expected_bits(probabilities, bits=4) == 4.0
    assert Raw().expected_bits(probabilities, bits=4) == 8.0


@pytest.mark.parametrize("codec", [Fixed(), Raw()])
def test_a_payload_of_another_length_is_refused(codec):
    payload = torch.zeros(9, dtype=torch.uint8)
    with pytest.raises(FrameError, match="10 symbols take"):
        codec.decode(payload, 10, 4)


def test_fixed_refuses_bits_behind_the_last_symbol():
    packed = kernels.pack_symbols(torch.ones(3, dtype=torch.uint8), 3)
    packed[-1] |= 0x80
    with pytest.raises(FrameError, match="behind the last symbol") as caught:
        Fixed().decode(packed, 3, 3)
    assert caught.value.position == 1


def test_raw_names_the_symbol_that_does_not_fit():
    payload = torch.tensor([1, 7, 8, 2], dtype=torch.uint8)
    with pytest.raises(FrameError, match="symbol 8 does not fit 3 bits") as caught:
        Raw().decode(payload, 4, 3)
    assert caught.value.position == 2
    assert Raw().decode(torch.tensor([255], dtype=torch.uint8), 1, 8).numel() == 1
