"""Sparse and low-rank frames, read by both decoders."""

import math

import numpy as np
import pytest
import slow_frame_decoder
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from slimgrad.comm import frame as wire
from slimgrad.comm.compressor import Compressor
from slimgrad.comm.lowrank import PowerSGD, SpectralAtomo
from slimgrad.comm.places import decode_places, encode_places
from slimgrad.comm.quantizers import NUQSGD, QSGDinf
from slimgrad.comm.sparsifiers import Atomo, Kept, RandomK, Threshold, TopK
from slimgrad.core.errors import FrameError

floats = st.one_of(
    st.floats(width=32, allow_nan=False, allow_infinity=False),
    st.sampled_from([0.0, -0.0, math.inf, -math.inf, math.nan, 1e-45, -3e38]),
    st.floats(-1, 1, width=32),
)
shares = st.sampled_from([0.001, 0.1, 0.4, 1.0])
sparsifiers = st.one_of(
    st.builds(TopK, keep=shares),
    st.builds(RandomK, keep=shares, scaled=st.booleans()),
    st.builds(Atomo, keep=shares),
    st.builds(Threshold, st.sampled_from([0.3, 1.0]), unit=st.sampled_from(["rms", "max", "one"])),
)
values = st.sampled_from([None, None, NUQSGD(bits=3, bucket_size=7), QSGDinf(bits=8)])


def both_decoders(frame):
    decoded = Compressor(None).decompress(frame)
    other = torch.tensor(slow_frame_decoder.decode(bytes(frame.numpy())), dtype=torch.float64)
    assert torch.equal(decoded.nan_to_num(7.0), other.float().nan_to_num(7.0))
    return decoded


@pytest.mark.filterwarnings("ignore:overflow:RuntimeWarning")
@settings(max_examples=200, deadline=None)
@given(st.lists(floats, max_size=60), sparsifiers, values)
def test_both_decoders_read_any_sparse_vector_alike(numbers, sparsifier, quantizer):
    vector = torch.tensor(numbers, dtype=torch.float32)
    compressor = Compressor(sparsifier, values=quantizer)
    frame = compressor.compress(vector, key="w", step=0)
    decoded = both_decoders(frame)
    if not vector.isfinite().all():
        assert not decoded.isfinite().all()
        assert wire.decode(frame).non_finite
    elif quantizer is None and not sparsifier.unbiased:
        assert bool(((decoded == vector) | (decoded == 0)).all())
    total = torch.linspace(-1, 1, len(numbers))
    expected = total + 0.5 * decoded
    compressor.decompress_add_(frame, total, alpha=0.5)
    assert torch.equal(total.nan_to_num(7.0), expected.nan_to_num(7.0))


@settings(max_examples=100, deadline=None)
@given(
    st.integers(1, 9),
    st.integers(1, 9),
    st.integers(1, 4),
    st.sampled_from([PowerSGD, SpectralAtomo]),
    values,
    st.sampled_from([1.0, 1e-40, 1e36, 0.0, math.nan, math.inf]),
)
def test_both_decoders_read_any_matrix_alike(rows, columns, rank, method, quantizer, size):
    matrix = torch.randn(rows, columns, generator=torch.Generator().manual_seed(rank)) * size
    frame = Compressor(method(rank), values=quantizer).compress(matrix, key="w", step=0)
    decoded = both_decoders(frame)
    if rank * (rows + columns) >= rows * columns:
        assert wire.decode(frame).header.method == 0
    assert bool(decoded.isfinite().all()) == math.isfinite(size)
    total = torch.ones(rows * columns, dtype=torch.float64)
    expected = total + decoded
    Compressor(None).decompress_add_(frame, total)
    assert torch.equal(total.nan_to_num(7.0), expected.nan_to_num(7.0))


@settings(max_examples=200, deadline=None)
@given(st.sets(st.integers(0, 5000), max_size=300), st.integers(0, 2**32 - 5002))
def test_places_survive_their_coding(chosen, behind):
    places = torch.tensor(sorted(chosen), dtype=torch.int64)
    n = max(chosen, default=0) + 1 + behind
    coded = encode_places(Kept(n, places, torch.zeros(len(places))))
    assert np.array_equal(decode_places(coded, n, len(places), 0), places.numpy())
    assert len(coded.section) <= (max(chosen, default=-1) + 8) // 8 + 1


@pytest.mark.parametrize("keep", [0.5, 0.1, 0.01, 0.001])
def test_places_spread_at_random_take_little_more_than_their_entropy(keep):
    n = 400_000
    chosen = torch.rand(n, generator=torch.Generator().manual_seed(5)) < keep
    kept = Kept(n, chosen.nonzero().flatten(), torch.zeros(int(chosen.sum())))
    bits = 8 * len(encode_places(kept).section) / len(kept.places)
    entropy = -(keep * math.log2(keep) + (1 - keep) * math.log2(1 - keep)) / keep
    # The worst parameter of a Golomb code costs 0.04 bit; 2 bytes end the strings.
    assert entropy * 0.97 < bits < entropy + 0.1


@pytest.mark.parametrize("low", [1, 40])
def test_a_huge_gap_is_no_overflow(low):
    n = 2**32 - 1
    places = torch.tensor([low, n - 1])
    coded = encode_places(Kept(n, places, torch.zeros(2)))
    assert len(coded.section) < 20
    assert decode_places(coded, n, 2, 0).tolist() == places.tolist()
    with pytest.raises(FrameError, match="lead beyond"):
        decode_places(coded, n - 1, 2, 0)


def test_a_frame_of_zeros_is_taken_only_up_to_a_limit():
    frame = Compressor(TopK(keep=0.001)).compress(torch.zeros(5000), key="w", step=0)
    with pytest.raises(FrameError, match="stands for 5000 components, at most 4999 are taken"):
        Compressor(None).decompress(frame, limit=4999)
    assert Compressor(None).decompress(frame, limit=5000).numel() == 5000
    data = bytearray(frame.numpy())
    data[16:24] = (2**32 - 1).to_bytes(8, "little")
    huge = torch.frombuffer(data, dtype=torch.uint8)
    with pytest.raises(FrameError, match="checksum"):
        Compressor(None).decompress(huge)


def test_sparse_frames_follow_one_another():
    compressor = Compressor(TopK(keep=0.3), values=NUQSGD(bits=3))
    frames = [compressor.compress(torch.linspace(-1, 1, n), key="w", step=0) for n in (50, 0, 7)]
    parts = wire.split(torch.cat([torch.zeros(1, dtype=torch.uint8), *frames])[1:], 3)
    assert all(torch.equal(part, frame) for part, frame in zip(parts, frames, strict=True))
    assert [both_decoders(part).numel() for part in parts] == [50, 0, 7]
