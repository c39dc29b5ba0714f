import math
from dataclasses import dataclass

import pytest
import torch
from torch import nn

from slimgrad.comm.compressor import Compressor
from slimgrad.comm.policy import Policy
from slimgrad.comm.quantizers import NUQSGD, QSGDinf
from slimgrad.comm.quantizers.base import Quantizer
from slimgrad.comm.sparsifiers import TopK
from slimgrad.core.errors import ConfigError
from slimgrad.diagnose import probe_compression


@dataclass(frozen=True)
class Overconfident(Quantizer):
    """NUQSGD that promises a tenth of its variance."""

    name = "overconfident"
    unbiased = True
    bits: int = 4
    bucket_size: int = 512

    def quantize(self, vector, key, *, serial=False):
        return NUQSGD(bits=4).quantize(vector, key, serial=serial)

    def variance_bound(self, n):
        return NUQSGD(bits=4).variance_bound(n) / 10


def gradients():
    generator = torch.Generator().manual_seed(0)
    return {
        "conv.weight": torch.randn(64, 64, generator=generator),
        "conv.bias": torch.randn(64, generator=generator),
        "dead.weight": torch.zeros(64, 64),
        "empty": torch.zeros(0, 4),
    }


def test_variance_bits_and_entropy_of_every_tensor():
    report = probe_compression(gradients(), Compressor(NUQSGD(bits=4)))
    rows = {row.name: row for row in report.rows}
    assert list(rows) == ["conv.weight", "conv.bias", "dead.weight"]
    weight = rows["conv.weight"]
    assert 0 < weight.measured_variance < weight.variance_bound
    assert weight.standard_error < 0.01
    assert weight.measured_bits == 8 * (64 + 4 * 8 + 2048) / 4096
    assert 2 < weight.entropy_bits < weight.measured_bits
    assert rows["conv.bias"].exact
    assert rows["conv.bias"].measured_variance == 0
    assert math.isnan(rows["conv.bias"].entropy_bits)
    assert rows["dead.weight"].measured_variance == 0
    assert rows["dead.weight"].entropy_bits == 8 * (64 + 4 * 8) / 4096
    assert report.defects == ()
    sent = sum(row.measured_bits * row.n for row in report.rows)
    assert report.measured_bits == pytest.approx(sent / (4096 + 64 + 4096))


def test_sparsifiers_are_held_to_their_contraction():
    row = probe_compression(gradients(), Compressor(TopK(keep=0.1))).rows[0]
    assert 0 < row.measured_variance < row.variance_bound == pytest.approx(0.9, abs=1e-3)
    assert row.measured_bits < 6
    assert math.isnan(row.entropy_bits)


def test_a_bound_that_does_not_hold_is_a_defect():
    report = probe_compression(gradients(), Compressor(Overconfident()))
    assert [row.name for row in report.defects] == ["conv.weight"]


def test_the_gradients_of_a_model_are_taken():
    model = nn.Linear(64, 64)
    with pytest.raises(ConfigError, match=r"no gradient to compress: run loss\.backward"):
        probe_compression(model, Compressor(QSGDinf(bits=4)))
    model(torch.randn(8, 64, generator=torch.Generator().manual_seed(1))).square().sum().backward()
    report = probe_compression(model, Compressor(QSGDinf(bits=4)), policy=Policy(min_numel=0))
    assert [(row.name, row.exact) for row in report.rows] == [("weight", False), ("bias", True)]


@pytest.mark.parametrize(
    ("given", "repeats", "message"),
    [
        ({"w": torch.ones(2000)}, 1, "repeats must be an integer >= 2, got 1"),
        ({"w": torch.ones(0)}, 4, "give at least one tensor"),
        ({"w": torch.tensor([1.0, math.nan])}, 4, "tensor 'w' is not finite"),
    ],
)
def test_what_cannot_be_probed_is_told(given, repeats, message):
    with pytest.raises(ConfigError, match=message):
        probe_compression(given, Compressor(NUQSGD()), repeats=repeats)
