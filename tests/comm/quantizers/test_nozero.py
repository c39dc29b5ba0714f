"""The reference code's grids, and the figures that were published with them."""

import math

import pytest
import torch

from slimgrad.comm.compressor import Compressor
from slimgrad.comm.quantizers import NUQSGD, QSGD, NoZero, QSGDinf
from slimgrad.core.errors import ConfigError
from slimgrad.theory import no_zero_variance_bound

BUCKET = 8192


def relative_variance(quantizer, vector):
    compressor = Compressor(quantizer)
    got = compressor.decompress(compressor.compress(vector, key="w", step=0)).double()
    return float((got - vector).square().sum() / vector.double().square().sum())


@pytest.mark.parametrize(
    ("without", "published", "with_zero", "expected", "spread"),
    [
        (NoZero("uniform", 4, BUCKET, "l2"), 35.4, QSGD(4, BUCKET), 8.12, 0.01),
        (NoZero("uniform", 4, BUCKET, "linf"), 0.147, QSGDinf(4, BUCKET), 0.160, 0.07),
        (NoZero("exponential", 4, BUCKET, "l2"), 0.313, NUQSGD(4, BUCKET), 0.328, 0.01),
    ],
    ids=["qsgd", "qsgdinf", "nuqsgd"],
)
def test_published_variances_are_those_of_grids_without_zero(
    without, published, with_zero, expected, spread
):
    """512 buckets of 8192 Laplace components.

    With the maximum norm nearly all of the spread is that of the squared maximum of a bucket, 27 %
    of its mean: 1.2 % for 512, so 6 standard deviations are allowed. Long runs give 0.143.
    """
    generator = torch.Generator().manual_seed(5)
    uniform = torch.rand(512 * BUCKET, generator=generator, dtype=torch.float64) - 0.5
    laplace = (-uniform.sign() * torch.log1p(-2 * uniform.abs())).float()
    assert relative_variance(without, laplace) == pytest.approx(published, rel=spread)
    assert relative_variance(with_zero, laplace) == pytest.approx(expected, rel=spread)


def test_a_lonely_component_makes_noise_of_every_zero():
    one_hot = torch.zeros(BUCKET)
    one_hot[9] = 2.0
    quantizer = NoZero("uniform", 4, BUCKET, "linf")
    assert relative_variance(quantizer, one_hot) == pytest.approx((BUCKET - 1) / 225, rel=1e-6)
    assert quantizer.variance_bound(BUCKET) == pytest.approx((BUCKET - 1) / 225, rel=0.01)
    assert relative_variance(QSGDinf(4, BUCKET), one_hot) == 0.0


def test_bounds_are_those_of_theory_up_to_the_resolution_of_chances():
    for quantizer in (NoZero(), NoZero("uniform", 3), NoZero(bits=1, norm="linf")):
        bound = no_zero_variance_bound(quantizer.level_grid.levels, 512)
        assert quantizer.variance_bound(10**6) == pytest.approx(bound, rel=1e-3, abs=2e-2)
        assert quantizer.variance_bound(10**6) > bound
    assert NoZero().variance_bound(0) == 0.0


def test_one_bit_rounds_to_plus_or_minus_the_maximum():
    v = torch.tensor([0.5, -0.5, 0.0, 1.0]).repeat(5000)
    compressor = Compressor(NoZero(bits=1, bucket_size=4, norm="linf"))
    got = compressor.decompress(compressor.compress(v, key="w", step=0)).view(5000, 4)
    assert bool((got.abs() == 1).all())
    tolerance = 2 * math.sqrt(math.log(2e7) / (2 * 5000))  # Hoeffding, 1e-7 each
    assert got.mean(0).tolist() == pytest.approx([0.5, -0.5, 0.0, 1.0], abs=tolerance)


@pytest.mark.parametrize(
    ("settings", "text"),
    [
        ({"kind": "exp"}, "unknown kind of levels 'exp'"),
        ({"bits": 0}, "NoZero needs bits from 1 to 8"),
        ({"bucket_size": -1}, "bucket_size=-1"),
        ({"norm": "max"}, "unknown norm 'max'"),
        ({"ratio": 1.0}, "0 < ratio < 1"),
        ({"ratio": None}, "ratio=None"),
        ({"bits": 8}, "float32 cannot tell apart"),
    ],
)
def test_what_is_not_allowed_is_named(settings, text):
    with pytest.raises(ConfigError, match=text):
        NoZero(**settings)
