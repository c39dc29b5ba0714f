import math

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from slimgrad.comm.codecs import Raw
from slimgrad.comm.compressor import Compressor
from slimgrad.comm.quantizers import EDEN, NUQSGD, QSGD, EFSign, QSGDinf, Sign, TernGrad
from slimgrad.core.errors import ConfigError, FrameError
from slimgrad.core.rng import stream_key

DTYPES = [torch.float16, torch.bfloat16, torch.float32, torch.float64]


def sample(*shape):
    return torch.randn(shape, generator=torch.Generator().manual_seed(3))


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("shape", [(), (1,), (7, 5), (0,), (2, 0, 3), (4, 3, 3, 3)])
def test_any_float_dtype_and_shape(dtype, shape):
    v = sample(*shape).to(dtype)
    compressor = Compressor(QSGDinf(bits=8, bucket_size=16))
    decoded = compressor.decompress(compressor.compress(v, key="w", step=0))
    assert decoded.dtype == torch.float32
    assert decoded.shape == (v.numel(),)
    step = v.abs().max().item() / 127 if v.numel() else 0.0
    assert torch.allclose(decoded, v.reshape(-1).float(), atol=step * 1.01)


@pytest.mark.parametrize("dtype", DTYPES)
def test_without_quantizer_values_are_exact(dtype):
    v = sample(5, 9).to(dtype)
    compressor = Compressor(None)
    frame = compressor.compress(v, key="w", step=0)
    assert frame.numel() == 64 + v.numel() * v.element_size()
    assert torch.equal(compressor.decompress(frame), v.reshape(-1).float())


def test_strides_do_not_matter():
    v = sample(6, 8)
    compressor = Compressor(NUQSGD())
    plain = compressor.compress(v.t().contiguous(), key="w", step=0)
    assert torch.equal(plain, compressor.compress(v.t(), key="w", step=0))
    expanded = v[:, :1].expand(6, 8)
    plain = compressor.compress(expanded.contiguous(), key="w", step=0)
    assert torch.equal(plain, compressor.compress(expanded, key="w", step=0))


def test_gradient_tracking_is_left_alone():
    v = sample(8).requires_grad_()
    assert not Compressor(None).compress(v, key="w", step=0).requires_grad


@pytest.mark.parametrize("serial", [False, True])
def test_the_key_names_seed_step_name_and_rank(serial):
    quantizer = NUQSGD(bits=3, bucket_size=10)
    v = sample(50)
    frame = Compressor(quantizer).compress(v, key="w", step=4, rank=2, seed=9, serial=serial)
    quantized = quantizer.quantize(v, stream_key(9, 4, "w", 2))
    other = Compressor(quantizer).compress(v, key="w", step=4, rank=2, seed=9)
    assert torch.equal(frame, other)
    assert torch.equal(frame[-quantized.packed.numel() :], quantized.packed)


def test_a_float64_beyond_float32_counts_as_infinite():
    v = torch.tensor([1e300, 1.0, 1.0, 1.0], dtype=torch.float64)
    compressor = Compressor(NUQSGD(bucket_size=2))
    decoded = compressor.decompress(compressor.compress(v, key="w", step=0))
    assert decoded[:2].isnan().all()
    assert decoded[2:].isfinite().all()


@settings(max_examples=60, deadline=None)
@given(
    st.integers(0, 1100),
    st.sampled_from([NUQSGD(bits=4), NUQSGD(ratio=0.3), QSGD(bits=2, bucket_size=9), None]),
    st.sampled_from([1.0, 0.5, -3.0]),
    st.sampled_from([torch.float32, torch.float64]),
    st.booleans(),
)
def test_decompress_add_adds_what_decompress_gives(n, quantizer, alpha, dtype, serial):
    compressor = Compressor(quantizer)
    frame = compressor.compress(sample(n), key="w", step=0)
    out = torch.linspace(-1, 1, n, dtype=dtype)
    expected = out + alpha * compressor.decompress(frame).to(dtype)
    result = compressor.decompress_add_(frame, out, alpha, serial=serial)
    assert result.data_ptr() == out.data_ptr()
    assert torch.equal(out, expected)


def test_serial_work_in_pieces_gives_the_same():
    v = sample(40000).to(torch.bfloat16)
    for compressor in (Compressor(None), Compressor(QSGDinf(bits=8))):
        frame = compressor.compress(v, key="w", step=0)
        assert torch.equal(frame, compressor.compress(v, key="w", step=0, serial=True))
        decoded = compressor.decompress(frame)
        assert torch.equal(decoded, compressor.decompress(frame, serial=True))
        out = torch.zeros(40000, dtype=torch.float64)
        compressor.decompress_add_(frame, out, serial=True)
        assert torch.equal(out.float(), decoded)


def test_adding_to_another_length_is_refused():
    compressor = Compressor(NUQSGD())
    frame = compressor.compress(sample(10), key="w", step=0)
    with pytest.raises(FrameError, match="holds 10 components, not 11") as caught:
        compressor.decompress_add_(frame, torch.zeros(11))
    assert caught.value.position == 16


@pytest.mark.parametrize("quantizer", [None, NUQSGD()])
@pytest.mark.parametrize(
    "out",
    [
        torch.zeros(10, dtype=torch.int32),
        torch.zeros(10, dtype=torch.bfloat16),
        torch.zeros(2, 5),
        torch.zeros(20)[::2],
        torch.zeros(10, requires_grad=True),
        torch.zeros(10, device="meta"),
    ],
)
def test_only_flat_float_sums_are_added_to(quantizer, out):
    frame = Compressor(quantizer).compress(sample(10), key="w", step=0)
    with pytest.raises(ConfigError, match="out must be flat, contiguous, float32 or float64"):
        Compressor(None).decompress_add_(frame, out)


@pytest.mark.parametrize("quantizer", [None, NUQSGD()])
@pytest.mark.parametrize("alpha", [float("nan"), float("-inf")])
def test_a_factor_that_is_not_finite_is_refused(quantizer, alpha):
    frame = Compressor(quantizer).compress(sample(10), key="w", step=0)
    with pytest.raises(ConfigError, match=f"alpha must be finite, got {alpha}"):
        Compressor(None).decompress_add_(frame, torch.zeros(10), alpha)


@pytest.mark.parametrize(
    ("dtype", "device"), [(torch.int64, "cpu"), (torch.cfloat, "cpu"), (torch.float32, "meta")]
)
def test_other_dtypes_and_devices_are_refused_by_name(dtype, device):
    v = torch.zeros(3, dtype=dtype, device=device)
    with pytest.raises(ConfigError, match=r"tensor 'w' is torch\.\w+ on (cpu|meta)"):
        Compressor(NUQSGD()).compress(v, key="w", step=0)


def test_a_class_is_not_a_quantizer():
    with pytest.raises(ConfigError, match="give an instance"):
        Compressor(NUQSGD)  # type: ignore[arg-type]


def test_an_unknown_codec_names_the_nearest():
    with pytest.raises(ConfigError, match="did you mean 'fixed'"):
        Compressor(NUQSGD(), codec="fixedd")


def test_a_codec_may_be_given_itself():
    compressor = Compressor(NUQSGD(), codec=Raw())
    assert compressor.codec.name == "raw"
    assert compressor.fixed_length
    assert repr(Compressor(QSGD())) == "Compressor(QSGD(bits=4, bucket_size=512), codec='fixed')"


@pytest.mark.parametrize(
    ("value", "key", "message"),
    [
        ([1.0, 2.0], "w", "'w' is a list; frames are made of tensors"),
        (None, "w", "'w' is a NoneType"),
        (torch.ones(3), 3, "key must be the name of the tensor, a text, got 3"),
        (torch.eye(20).to_sparse(), "w", r"tensor 'w' is torch\.sparse_coo torch\.float32"),
    ],
)
def test_what_is_no_dense_tensor_is_refused(value, key, message):
    with pytest.raises(ConfigError, match=message):
        Compressor(NUQSGD()).compress(value, key=key, step=0)


def test_what_is_no_frame_or_no_limit_is_refused():
    compressor = Compressor(NUQSGD())
    with pytest.raises(FrameError, match="a frame is a flat uint8 tensor, not bytes"):
        compressor.decompress(b"SGRD")
    frame = compressor.compress(torch.ones(10), key="w", step=0)
    for limit in (-1, "x", True):
        with pytest.raises(ConfigError, match="limit must be an integer >= 0"):
            compressor.decompress(frame, limit=limit)


def test_error_bounds_of_biased_quantizers_are_those_they_state():
    for quantizer in (EDEN(), EFSign(), TernGrad(clip=2.5)):
        assert Compressor(quantizer).error_bound(2000) == quantizer.variance_bound(2000) < math.inf


def test_a_method_without_strength_says_so():
    with pytest.raises(ConfigError, match=r"Sign\(.*has no strength to change by the step"):
        Compressor(Sign()).with_strength(4)
