import math

import pytest
import torch

from slimgrad.comm.compressor import Compressor
from slimgrad.comm.majority import majority_vote
from slimgrad.comm.quantizers import NUQSGD, EFSign, Sign
from slimgrad.core.errors import ConfigError, FrameError


def frames_of(vectors, quantizer):
    return [Compressor(quantizer).compress(v, key="w", step=0) for v in vectors]


@pytest.mark.parametrize("ranks", [1, 2, 3, 4])
def test_the_sign_of_most_ranks(ranks):
    vectors = list(torch.randn(ranks, 900, generator=torch.Generator().manual_seed(1)))
    expected = torch.stack(vectors).sign().sum(0).sign()
    for serial in (False, True):
        assert torch.equal(majority_vote(frames_of(vectors, Sign()), serial=serial), expected)


def test_sizes_are_the_mean_of_what_the_ranks_sent():
    vectors = list(torch.randn(3, 500, generator=torch.Generator().manual_seed(2)))
    frames = frames_of(vectors, EFSign(bucket_size=100))
    decoded = torch.stack([Compressor(None).decompress(frame) for frame in frames])
    expected = decoded.sign().sum(0).sign() * decoded.abs().mean(0)
    torch.testing.assert_close(majority_vote(frames), expected)


def test_zeros_abstain_ties_are_zero_and_nan_stays():
    vectors = [torch.tensor([1.0, 0.0, -1.0, math.nan]), torch.tensor([-1.0, 2.0, -3.0, 1.0])]
    got = majority_vote(frames_of(vectors, None))
    assert got[:3].tolist() == [0.0, 1.0, -2.0]
    assert bool(got[3].isnan())


def test_any_kind_of_frame_votes():
    v = torch.tensor([1.0, -1.0])
    mixed = frames_of([v], NUQSGD(bits=8, norm="linf")) + frames_of([v], None)
    assert majority_vote(mixed).tolist() == [1.0, -1.0]


def test_bad_arguments_and_frames_are_refused():
    with pytest.raises(ConfigError, match="one frame or more"):
        majority_vote([])
    frames = frames_of([torch.ones(3), torch.ones(4)], Sign())
    with pytest.raises(FrameError, match="holds 4 components, the first 3"):
        majority_vote(frames)
    with pytest.raises(FrameError, match="a header takes 64 bytes"):
        majority_vote([frames[0], frames[1][:10]])
