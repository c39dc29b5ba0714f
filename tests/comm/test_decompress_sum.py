"""Sums over frames of any kinds equal adding them one by one."""

import pytest
import torch

from slimgrad.comm.compressor import Compressor
from slimgrad.comm.quantizers import EDEN, NUQSGD, Dithered, QSGDinf
from slimgrad.core.errors import ConfigError, FrameError

QUANTIZED = [NUQSGD(), EDEN(), Dithered(), QSGDinf(bits=7, bucket_size=33), NUQSGD(ratio=0.4)]


def frames_of(quantizers, n):
    vectors = torch.randn(len(quantizers), n, generator=torch.Generator().manual_seed(n))
    return [
        Compressor(q).compress(v, key="w", step=0, rank=rank)
        for rank, (q, v) in enumerate(zip(quantizers, vectors, strict=True))
    ]


@pytest.mark.parametrize("n", [0, 1, 700, 5000])
@pytest.mark.parametrize("quantizers", [QUANTIZED, [*QUANTIZED, None], [NUQSGD()] * 4])
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
@pytest.mark.parametrize("serial", [False, True])
def test_equal_to_adding_one_by_one(n, quantizers, dtype, serial):
    compressor, frames = Compressor(None), frames_of(quantizers, n)
    expected = torch.zeros(n, dtype=dtype)
    for frame in frames:
        compressor.decompress_add_(frame, expected)
    out = torch.full((n,), 5.0, dtype=dtype)
    got = compressor.decompress_sum_(frames, out, serial=serial)
    assert got.data_ptr() == out.data_ptr()
    assert torch.equal(got, expected)
    if dtype == torch.float32:
        assert torch.equal(compressor.decompress_sum(frames, serial=serial), expected)


def test_frames_of_different_lengths_are_refused_by_number():
    frames = [*frames_of([NUQSGD(), EDEN()], 10), *frames_of([NUQSGD()], 11)]
    with pytest.raises(FrameError, match="frame 3 of 3 holds 11 components, not 10") as caught:
        Compressor(None).decompress_sum(frames)
    assert caught.value.position == 16
    with pytest.raises(FrameError, match="frame 1 of 3 holds 10 components, not 12"):
        Compressor(None).decompress_sum_(frames, torch.zeros(12))


def test_no_frames():
    with pytest.raises(ConfigError, match="at least one frame"):
        Compressor(None).decompress_sum([])
    assert Compressor(None).decompress_sum_([], torch.ones(3)).tolist() == [0.0] * 3


def test_only_flat_float_sums_are_written():
    with pytest.raises(ConfigError, match="out must be flat"):
        Compressor(None).decompress_sum_([], torch.zeros(2, 2))
