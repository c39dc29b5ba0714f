"""The choice of a codec: never far from the shortest payload, aware of tables and of the link."""

import pytest
import torch

from slimgrad import kernels
from slimgrad.comm import frame as wire
from slimgrad.comm.codecs import CODECS, Auto, Codec, auto, codec_with_id
from slimgrad.comm.compressor import Compressor
from slimgrad.comm.quantizers import NUQSGD, QSGD, QSGDinf
from slimgrad.comm.quantizers.base import LevelGrid, Quantized
from slimgrad.core.errors import ConfigError


def normal(n: int) -> torch.Tensor:
    return torch.randn(n, generator=torch.Generator().manual_seed(n))


def chosen(frame: torch.Tensor) -> str:
    codec = codec_with_id(wire.decode(frame).header.code_id)
    assert codec is not None
    return codec.name


VECTORS = [
    (NUQSGD(bits=4), normal(100_000)),
    (NUQSGD(bits=4), normal(50)),
    (NUQSGD(bits=3, bucket_size=8192), normal(100_000)),
    (QSGD(bits=4, bucket_size=8192), normal(100_000)),
    (QSGD(bits=2, bucket_size=100_000), normal(100_000)),
    (QSGDinf(bits=8), normal(100_000)),
    (QSGDinf(bits=6), normal(3000)),
    (QSGDinf(bits=4), torch.zeros(70_000)),
    (QSGDinf(bits=4), torch.ones(7).repeat(1000)),
    (NUQSGD(bits=4), torch.empty(0)),
]


@pytest.mark.parametrize(("quantizer", "vector"), VECTORS)
def test_no_codec_is_much_shorter_than_the_chosen_one(quantizer, vector):
    frame = Compressor(quantizer, "auto").compress(vector, key="w", step=0)
    others = {
        name: Compressor(quantizer, name).compress(vector, key="w", step=0)
        for name in CODECS
        if name not in ("auto", "raw")
    }
    assert torch.equal(frame, others[chosen(frame)])
    # The order of the symbols, which no estimate sees, moves sizes by less than this.
    assert frame.numel() <= 1.02 * min(other.numel() for other in others.values()) + 16
    assert torch.equal(
        Compressor(None).decompress(frame), Compressor(None).decompress(others["fixed"])
    )


def test_tables_are_counted():
    few, many = normal(50), normal(100_000)
    compressor = Compressor(NUQSGD(bits=4), "auto")
    assert chosen(compressor.compress(few, key="w", step=0)) == "fixed"
    assert chosen(compressor.compress(many, key="w", step=0)) != "fixed"


def test_a_fast_link_sends_plain_symbols_and_a_slow_one_short_ones():
    def choice(link: float | None) -> str:
        codec = Auto(link_bits_per_second=link)
        return chosen(Compressor(NUQSGD(bits=4), codec).compress(normal(100_000), key="w", step=0))

    assert choice(1e12) == "fixed"
    assert choice(1e6) == choice(None) != "fixed"


def test_mostly_zeros_go_as_run_lengths_or_better():
    symbols = torch.zeros(100_000, dtype=torch.uint8)
    symbols[::1000] = 1
    q = Quantized(
        n=len(symbols),
        bits=4,
        bucket_size=512,
        grid=LevelGrid("uniform", tuple(j / 7 for j in range(8))),
        norm="l2",
        scales=torch.ones(196),
        packed=kernels.pack_symbols(symbols, 4),
        key=0,
    )
    assert Auto().encode(q).numel() <= CODECS.get("elias_omega")().encode(q).numel() < 400


def test_a_sample_of_a_long_vector_leads_to_the_same_choice(monkeypatch):
    q = NUQSGD(bits=4).quantize(normal(100_000), key=1)
    whole = Auto().for_vector(q)
    monkeypatch.setattr(auto, "COUNTED_BLOCKS", 10)
    assert Auto().for_vector(q).name == whole.name


def test_bounds_and_expectation_are_those_of_the_candidates():
    fixed = Auto().payload_bounds(1000, 4)
    assert fixed[0] < 500 < fixed[1]
    assert not Compressor(NUQSGD(), "auto").fixed_length
    assert Auto().expected_bits(torch.full((16,), 1 / 16), 4) == pytest.approx(4.0, abs=0.05)


def test_errors():
    for link in (0, -1.0, float("inf"), float("nan"), "fast", True):
        with pytest.raises(ConfigError, match="link_bits_per_second above 0 or None"):
            Auto(link_bits_per_second=link)  # type: ignore[arg-type]
    with pytest.raises(ConfigError, match="decodes nothing"):
        Auto().decode(torch.zeros(1, dtype=torch.uint8), 1, 8)


def test_every_codec_is_its_own_choice():
    q = NUQSGD(bits=4).quantize(normal(10), key=1)
    for name in CODECS:
        codec: Codec = CODECS.get(name)()
        assert name == "auto" or codec.for_vector(q) is codec
        assert name == "auto" or codec.overhead_bytes(10, 4) >= 0
