"""Sparsifiers and low-rank methods inside a compressor."""

import math

import pytest
import torch

from slimgrad.comm import frame as wire
from slimgrad.comm.codecs import CODECS
from slimgrad.comm.compressor import Compressor
from slimgrad.comm.lowrank import PowerSGD, SpectralAtomo
from slimgrad.comm.quantizers import NUQSGD, QSGD, QSGDinf
from slimgrad.comm.sparsifiers import Atomo, RandomK, Threshold, TopK
from slimgrad.core.errors import ConfigError

DTYPES = [torch.float16, torch.bfloat16, torch.float32, torch.float64]
METHODS = [TopK(0.1), RandomK(0.1), Atomo(0.1), Threshold(1.0), PowerSGD(2), SpectralAtomo(2)]


def sample(*shape):
    return torch.randn(shape, generator=torch.Generator().manual_seed(3))


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("method", METHODS, ids=repr)
@pytest.mark.parametrize("shape", [(), (1,), (7, 5), (0,), (2, 0, 3), (16, 8, 3, 3)])
def test_any_float_dtype_and_shape(dtype, method, shape):
    v = sample(*shape).to(dtype)
    frame = Compressor(method, values=QSGDinf(bits=8)).compress(v, key="w", step=0)
    decoded = Compressor(None).decompress(frame)
    assert decoded.dtype == torch.float32
    assert decoded.shape == (v.numel(),)
    assert decoded.isfinite().all()


def test_sizes_are_those_of_the_parts():
    v = sample(64, 64)
    kept = 41
    top = Compressor(TopK(0.01)).compress(v, key="w", step=0)
    places = wire.decode(top).payload.numel()
    assert top.numel() == 64 + places + 64 + 4 * kept
    assert places < kept * 9 / 8 + 2
    random = Compressor(RandomK(0.01)).compress(v, key="w", step=0)
    assert random.numel() == 64 + 64 + 4 * kept
    quantized = Compressor(RandomK(0.01), values=NUQSGD(bits=4)).compress(v, key="w", step=0)
    assert quantized.numel() == 64 + 64 + 4 + math.ceil(kept / 2)
    power = Compressor(PowerSGD(2)).compress(v, key="w", step=0)
    assert power.numel() == 64 + 2 * (64 + 4 * 64 * 2)


@pytest.mark.parametrize(
    ("method", "values", "codec", "fixed"),
    [
        (RandomK(0.1), None, "fixed", True),
        (RandomK(0.1), NUQSGD(), "raw", True),
        (TopK(0.1), None, "fixed", False),
        (Atomo(0.1), None, "fixed", False),
        (PowerSGD(1), QSGD(bits=8), "fixed", True),
        (SpectralAtomo(1), None, "fixed", False),
        (None, None, "fixed", True),
    ],
)
def test_fixed_lengths_are_fixed(method, values, codec, fixed):
    compressor = Compressor(method, codec, values)
    assert compressor.fixed_length == fixed
    vectors = [
        sample(40, 40),
        torch.arange(1600.0).view(40, 40) ** 8,
        torch.eye(40),
        -sample(40, 40),
    ]
    vectors[3][0, 0] = math.nan
    lengths = {compressor.compress(v, key="w", step=k).numel() for k, v in enumerate(vectors)}
    assert (len(lengths) == 1) == fixed


def test_the_codec_is_that_of_the_values():
    for codec in ("fixed", "raw"):
        compressor = Compressor(TopK(0.5), codec, NUQSGD(bits=3))
        frame = wire.decode(compressor.compress(sample(100), key="w", step=0))
        assert frame.inner[0].header.code_id == CODECS.get(codec).code_id


def test_values_and_places_are_drawn_from_different_streams():
    v = torch.ones(512 * 8)
    frames = [
        wire.decode(Compressor(RandomK(1 / 8), values=QSGD(bits=2)).compress(v, key="w", step=s))
        for s in range(2)
    ]
    keys = {key for f in frames for key in (f.header.key, f.inner[0].header.key)}
    assert len(keys) == 4


def test_low_rank_starts_are_kept_by_key_and_not_by_instance_of_the_method():
    method = PowerSGD(rank=1)
    matrix = sample(30, 20)
    compressor, other = Compressor(method), Compressor(method)
    first = compressor.compress(matrix, key="a", step=0)
    assert set(compressor.starts) == {"a"}
    assert other.starts == {}
    second = compressor.compress(matrix, key="a", step=1)

    def error(frame):
        return float((compressor.decompress(frame) - matrix.view(-1)).norm())

    assert error(second) < error(first)
    assert torch.equal(other.compress(matrix, key="a", step=0), first)
    assert compressor.with_strength(2).starts is compressor.starts
    assert compressor.with_own_state().starts == {}


def test_a_matrix_that_gains_nothing_is_sent_exactly():
    v = sample(3, 4)
    frame = Compressor(PowerSGD(rank=2)).compress(v, key="w", step=0)
    assert torch.equal(frame, wire.encode_raw(v.view(-1)))


@pytest.mark.parametrize(
    ("method", "strength", "setting"),
    [
        (NUQSGD(bits=4), 3, "bits=3"),
        (TopK(0.5), 0.25, "keep=0.25"),
        (PowerSGD(1), 3, "rank=3"),
        (Threshold(1.0), 3, "threshold=3"),
    ],
)
def test_strength_is_the_setting_of_the_method(method, strength, setting):
    changed = Compressor(method, "raw").with_strength(strength)
    assert setting in repr(changed)
    assert "codec='raw'" in repr(changed)


def test_a_strength_that_does_not_fit_is_named():
    with pytest.raises(ConfigError, match="keep=3"):
        Compressor(TopK(0.5)).with_strength(3)
    with pytest.raises(ConfigError, match="exact values have no strength"):
        Compressor(None).with_strength(3)


def test_wrong_methods_are_named():
    with pytest.raises(ConfigError, match="'topk' is not a quantizer, sparsifier or low-rank"):
        Compressor("topk")  # type: ignore[arg-type]
    with pytest.raises(ConfigError, match=r"values=TopK\(.*is not a quantizer"):
        Compressor(TopK(), values=TopK())  # type: ignore[arg-type]
    for method in (None, NUQSGD()):
        with pytest.raises(ConfigError, match="leave it out"):
            Compressor(method, values=NUQSGD())


@pytest.mark.parametrize(
    "compressor",
    [
        Compressor(None),
        Compressor(NUQSGD(bits=4, bucket_size=64)),
        Compressor(TopK(0.2)),
        Compressor(TopK(0.2), values=NUQSGD(bits=4, bucket_size=64)),
        Compressor(TopK(0.2), values=QSGD(bits=2, bucket_size=64)),
        Compressor(RandomK(0.25), values=NUQSGD(bits=3, bucket_size=64)),
        Compressor(RandomK(0.25, scaled=False), values=NUQSGD(bits=4, bucket_size=64)),
        Compressor(Atomo(0.25), values=NUQSGD(bits=4, bucket_size=64)),
        Compressor(PowerSGD(2)),
        Compressor(SpectralAtomo(2)),
    ],
    ids=repr,
)
def test_the_error_stays_below_its_bound(compressor):
    for vector in (sample(24, 24), torch.ones(24, 24), sample(24, 24) ** 7):
        exact = vector.double().view(-1)
        errors = []
        for step in range(200):
            frame = compressor.compress(vector, key="w", step=step)
            error = compressor.decompress(frame).double() - exact
            errors.append(error.square().sum() / exact.square().sum())
        spread = 7 * float(torch.stack(errors).std()) / math.sqrt(len(errors))
        bound = compressor.error_bound(576)
        assert float(torch.stack(errors).mean()) <= bound * (1 + 1e-5) + spread + 1e-12


def test_error_bounds_compose():
    w = NUQSGD(bits=4).variance_bound(10)
    assert Compressor(RandomK(0.01), values=NUQSGD(bits=4)).error_bound(1000) == pytest.approx(
        100 * (1 + w) - 1
    )
    top = Compressor(TopK(0.01), values=NUQSGD(bits=4)).error_bound(1000)
    full = NUQSGD(bits=4).variance_bound(1000)
    assert top == pytest.approx(0.99 + 0.01 * full)
    assert Compressor(PowerSGD(), values=NUQSGD()).error_bound(1000) == math.inf
