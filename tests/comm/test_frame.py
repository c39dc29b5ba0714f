import math

import pytest
import slow_frame_decoder
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from slimgrad.comm import frame as wire
from slimgrad.comm.codecs import CODECS
from slimgrad.comm.compressor import Compressor
from slimgrad.comm.quantizers import EDEN, NUQSGD, QSGD, Dithered, QSGDinf
from slimgrad.core.errors import ConfigError, FrameError


def same(left, right):
    return len(left) == len(right) and all(
        a == b or (math.isnan(a) and math.isnan(b)) for a, b in zip(left, right, strict=True)
    )


floats = st.one_of(
    st.floats(width=32, allow_nan=False, allow_infinity=False),
    st.sampled_from([0.0, -0.0, math.inf, -math.inf, math.nan, 1e-45, -3e38, 1e-38]),
    st.floats(-1, 1, width=32),
)
quantizers = st.one_of(
    st.builds(
        NUQSGD,
        bits=st.integers(2, 8),
        bucket_size=st.integers(1, 40),
        norm=st.sampled_from(["l2", "linf"]),
    ),
    st.builds(NUQSGD, bits=st.integers(2, 5), ratio=st.sampled_from([0.3, 0.8])),
    st.builds(QSGD, bits=st.integers(2, 8), bucket_size=st.integers(1, 40)),
    st.builds(QSGDinf, bits=st.integers(2, 8), bucket_size=st.integers(1, 600)),
    st.builds(
        Dithered,
        step_rms=st.sampled_from([0.01, 0.5, 1.0, 4.0]),
        bits=st.integers(2, 8),
        bucket_size=st.integers(1, 40),
    ),
)


@settings(max_examples=150, deadline=None)
@given(st.lists(floats, max_size=60), quantizers, st.sampled_from(list(CODECS)))
def test_both_decoders_read_any_vector_alike(values, quantizer, codec):
    vector = torch.tensor(values, dtype=torch.float32)
    frame = Compressor(quantizer, codec).compress(vector, key="w", step=0)
    decoded = Compressor(None).decompress(frame)
    assert same(decoded.tolist(), slow_frame_decoder.decode(bytes(frame.numpy())))
    size = quantizer.bucket_size
    for start in range(0, len(values), size):
        bucket, result = vector[start : start + size], decoded[start : start + size]
        if bucket.isfinite().all():
            assert result.isfinite().all()
            if not isinstance(quantizer, Dithered):
                assert bool((result * bucket >= 0).all())
        else:
            assert result.isnan().all()
    assert wire.decode(frame).non_finite == (not vector.isfinite().all())


@settings(max_examples=20, deadline=None)
@given(
    st.sampled_from([511, 512, 513, 1024, 1100]),
    quantizers,
    st.sampled_from(["fixed", "rans", "context"]),
    st.integers(0, 2**32),
)
def test_both_decoders_read_full_blocks_alike(n, quantizer, codec, seed):
    vector = torch.randn(n, generator=torch.Generator().manual_seed(seed))
    frame = Compressor(quantizer, codec).compress(vector, key="w", step=0)
    decoded = Compressor(None).decompress(frame).tolist()
    assert decoded == slow_frame_decoder.decode(bytes(frame.numpy()))


@settings(max_examples=40, deadline=None)
@given(
    st.lists(floats, max_size=60),
    st.sampled_from([0, 0, 512]),
    st.builds(EDEN, bits=st.integers(1, 4)),
    st.sampled_from(["fixed", "raw"]),
)
def test_both_decoders_rotate_back_alike(values, gap, quantizer, codec):
    vector = torch.cat([torch.tensor(values, dtype=torch.float32), torch.linspace(-1, 1, gap)])
    frame = Compressor(quantizer, codec).compress(vector, key="w", step=0)
    decoded = Compressor(None).decompress(frame)
    assert same(decoded.tolist(), slow_frame_decoder.decode(bytes(frame.numpy())))
    for block, result in zip(vector.split(512), decoded.split(512), strict=True):
        finite = bool(block.isfinite().all())
        assert bool(result.isfinite().all()) == finite
        assert finite or bool(result.isnan().all())
    assert wire.decode(frame).non_finite == (not vector.isfinite().all())


@settings(deadline=None)
@given(
    st.lists(floats, max_size=20),
    st.sampled_from([torch.float32, torch.float16, torch.bfloat16, torch.float64]),
)
def test_raw_frames_keep_every_value_and_flag_what_is_not_finite(values, dtype):
    vector = torch.tensor(values, dtype=torch.float64).to(dtype)
    frame = wire.encode_raw(vector)
    assert frame.numel() == 64 + vector.numel() * vector.element_size()
    decoded = wire.decode(frame)
    assert decoded.values().dtype == dtype
    assert same(decoded.values().tolist(), vector.tolist())
    assert same(slow_frame_decoder.decode(bytes(frame.numpy())), vector.double().tolist())
    assert decoded.non_finite == (not vector.isfinite().all())


def test_raw_frames_refuse_other_dtypes():
    with pytest.raises(ConfigError, match=r"not torch\.int32"):
        wire.encode_raw(torch.zeros(3, dtype=torch.int32))


def test_size_counts_everything():
    frame = Compressor(NUQSGD(bits=4, bucket_size=512)).compress(torch.ones(1100), key="w", step=0)
    assert frame.numel() == 64 + 4 * 3 + 2 * 256 + 76 // 2
    table = Compressor(NUQSGD(bits=3, ratio=0.3)).compress(torch.ones(5), key="w", step=0)
    assert table.numel() == 64 + 4 * 3 + 4 + 2


def test_frames_follow_one_another_at_any_address():
    compressor = Compressor(NUQSGD(bits=3, bucket_size=5))
    vectors = [torch.linspace(-1, 1, n) for n in (1, 7, 0, 13)]
    frames = [compressor.compress(v, key=str(k), step=0) for k, v in enumerate(vectors)]
    message = torch.cat([torch.zeros(1, dtype=torch.uint8), *frames])[1:]
    parts = wire.split(message, 4)
    for part, frame in zip(parts, frames, strict=True):
        assert torch.equal(part, frame)
        assert torch.equal(compressor.decompress(part), compressor.decompress(frame))


def test_split_says_which_frame_is_wrong():
    frame = wire.encode_raw(torch.ones(2))
    message = torch.cat([frame, frame])
    with pytest.raises(FrameError, match="72 bytes follow the 1 frames") as caught:
        wire.split(message, 1)
    assert caught.value.position == 72
    with pytest.raises(FrameError, match="frame 3 of 3: a header takes 64 bytes") as caught:
        wire.split(message, 3)
    assert caught.value.position == 144
    message[72] = 0
    with pytest.raises(FrameError, match="frame 2 of 2: magic") as caught:
        wire.split(message, 2)
    assert caught.value.position == 72


@pytest.mark.parametrize(
    "data",
    [
        torch.zeros(64),
        torch.zeros(8, 8, dtype=torch.uint8),
        torch.zeros(128, dtype=torch.uint8)[::2],
        torch.zeros(64, dtype=torch.uint8, device="meta"),
    ],
)
def test_only_flat_bytes_are_frames(data):
    with pytest.raises(FrameError, match="flat contiguous uint8"):
        wire.decode(data)
