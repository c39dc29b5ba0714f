import pytest
import torch

from slimgrad.comm.compressor import Compressor
from slimgrad.comm.quantizers import NUQSGD, Levels
from slimgrad.core.errors import ConfigError
from slimgrad.theory import variance_bound


@pytest.mark.parametrize(("count", "bits"), [(2, 2), (3, 3), (4, 3), (5, 4), (8, 4), (128, 8)])
def test_the_least_width_that_holds_the_levels(count, bits):
    quantizer = Levels([j / (count - 1) for j in range(count)])
    assert quantizer.bits == bits
    assert len(quantizer.level_grid.levels) == count


def test_the_levels_of_another_quantizer_give_its_rounding():
    v = torch.randn(5000, generator=torch.Generator().manual_seed(1))
    ours, theirs = Levels(NUQSGD(ratio=0.3).level_grid.levels), NUQSGD(ratio=0.3)
    frames = [Compressor(q).compress(v, key="w", step=0) for q in (ours, theirs)]
    assert torch.equal(*frames)
    assert ours.variance_bound(512) == theirs.variance_bound(512)
    bound = variance_bound(ours.levels, 512, "linf")
    assert Levels(ours.levels, norm="linf").variance_bound(512) == pytest.approx(bound, abs=1e-2)


@pytest.mark.parametrize(
    ("settings", "text"),
    [
        ({"levels": (0, 0.5)}, "ascend strictly from 0 to 1"),
        ({"levels": (0, 0.5, 0.5, 1)}, "ascend strictly"),
        ({"levels": "half"}, "ascend strictly"),
        ({"levels": [j / 128 for j in range(129)]}, "fit in 8 bits, got 129"),
        ({"levels": (0, 0.5, 0.5 + 1e-12, 1)}, "float32 cannot tell apart"),
        ({"levels": (0, 1), "norm": "l1"}, "unknown norm 'l1'"),
        ({"levels": (0, 1), "bucket_size": 0}, "bucket_size=0"),
    ],
)
def test_what_is_not_allowed_is_named(settings, text):
    with pytest.raises(ConfigError, match=text):
        Levels(**settings)
