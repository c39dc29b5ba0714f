from dataclasses import dataclass
from typing import ClassVar

import pytest
import torch
import torch.nn.functional as F
from torch import nn

from slimgrad.approx.estimators import Exact, Random, Skip, TopOne, Zero
from slimgrad.approx.estimators.base import GradientEstimator, WeightGradCost
from slimgrad.core.errors import ConfigError
from slimgrad.core.rng import numpy_generator
from slimgrad.diagnose import has_batch_norm, probe_gradient, without_batch_norm


@dataclass(frozen=True)
class HalfOfTheBatch(GradientEstimator):
    """Keeps every sample with probability 1/2, doubled: unbiased by construction."""

    factor: float = 2.0
    name: ClassVar[str] = "half"
    unbiased: ClassVar[bool] = True
    needs_key: ClassVar[bool] = True

    def weight_grad(self, x, grad_out, geometry, key):
        keep = torch.from_numpy(numpy_generator(key).random(len(x)) < 0.5)
        weights = (keep * self.factor).view(-1, *[1] * (grad_out.dim() - 1))
        return Exact().weight_grad(x, grad_out * weights.to(grad_out.dtype), geometry, 0)

    def cost(self, geometry, grad_out_shape):
        exact = geometry.weight_grad_macs(grad_out_shape)
        return WeightGradCost(exact // 2, exact)


def network(norm):
    torch.manual_seed(3)
    layers = [nn.Conv2d(1, 4, 3, padding=1, padding_mode="reflect"), nn.ReLU(inplace=True)]
    if norm:
        layers.insert(1, nn.BatchNorm2d(4))
    return nn.Sequential(
        *layers, nn.Conv2d(4, 4, 3, padding="same"), nn.ReLU(), nn.Flatten(), nn.Linear(144, 3)
    )


def batches(count):
    """Images whose class is the brightest of their first three rows."""
    generator = torch.Generator().manual_seed(4)
    images = torch.randn(count, 8, 1, 6, 6, generator=generator)
    labels = images[:, :, 0, :3].mean(3).argmax(2)
    return list(zip(images, labels, strict=True))


def loss(model, batch):
    images, labels = batch
    return F.cross_entropy(model(images), labels)


def probe(estimators, norm=False, count=64, **settings):
    report = probe_gradient(network(norm), batches(count), loss, estimators, **settings)
    return {(row.layer, row.estimator): row for row in report.rows}


def test_the_exact_gradient_has_no_error_and_is_the_one_of_autograd():
    rows = probe([Exact()])
    assert {layer for layer, _ in rows} == {"0", "2"}
    for row in rows.values():
        assert row.verdict == "unbiased"
        assert row.relative_bias_high == 0
        assert row.cosine == pytest.approx(1)
        assert row.norm_ratio == pytest.approx(1)
        assert row.noise_multiplier == 1
    model = network(norm=False)
    loss(model, batches(1)[0]).backward()
    from slimgrad.diagnose.layer_tape import LayerTape

    tape = LayerTape({"0": model[0], "2": model[2], "5": model[5]})
    with tape:
        loss(model, batches(1)[0]).backward()
    for name, layer in (("0", model[0]), ("2", model[2]), ("5", model[5])):
        torch.testing.assert_close(tape.exact(name) * 2, layer.weight.grad.double().flatten())


def test_biased_estimators_are_shown_to_be_biased():
    rows = probe([Zero(), TopOne(scale=1 / 128)])
    for layer in ("0", "2"):
        zero = rows[layer, "Zero()"]
        assert zero.verdict == "biased"
        assert not zero.is_defect
        assert zero.relative_bias_low < zero.relative_bias < zero.relative_bias_high < 1.1
        assert zero.norm_ratio == 0
        assert rows[layer, repr(TopOne(scale=1 / 128))].verdict == "biased"


def test_an_unbiased_estimator_is_called_so_only_within_the_tolerance():
    # The bias interval contains 0 with at least 95 %; the seed is fixed.
    rows = probe([HalfOfTheBatch()], count=256, tolerance=0.9)
    strict = probe([HalfOfTheBatch()], count=16, tolerance=1e-3)
    for layer in ("0", "2"):
        row = rows[layer, "HalfOfTheBatch(factor=2.0)"]
        assert row.verdict == "unbiased"
        assert row.added_variance > 0.1
        # Without bias the squared error is the variance over the draws.
        assert row.noise_multiplier - 1 == pytest.approx(row.added_variance, rel=0.3)
        assert strict[layer, "HalfOfTheBatch(factor=2.0)"].verdict == "open"


def test_a_false_claim_is_a_defect():
    rows = probe([HalfOfTheBatch(factor=1.0)])
    assert any(row.is_defect for row in rows.values())


def test_random_draws_count_as_added_variance():
    rows = probe([Random(scale=0.01)])
    for layer, channels in (("0", 1), ("2", 4)):
        row = rows[layer, repr(Random(scale=0.01))]
        assert row.added_variance > 0
        # 64 draws of 36 or 144 normals: the mean square is within 25 % of its mean.
        size = 4 * channels * 9 * 0.01**2
        exact_square = size / row.norm_ratio**2
        assert exact_square > 0
        assert row.verdict == "biased"


def test_the_probed_model_stays_as_it_is():
    model = network(norm=True)
    before = {name: value.clone() for name, value in model.state_dict().items()}
    probe_gradient(model, batches(16), loss, [Zero()])
    assert all(torch.equal(before[name], value) for name, value in model.state_dict().items())
    assert all(parameter.grad is None for parameter in model.parameters())


def test_batch_normalisation_can_be_taken_out():
    model = network(norm=True)
    bare = without_batch_norm(model)
    assert has_batch_norm(model)
    assert not has_batch_norm(bare)
    assert bare(torch.zeros(2, 1, 6, 6)).shape == (2, 3)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"count": 15}, "at least 16 batches, got 15"),
        ({"estimators": []}, "at least one estimator"),
        ({"estimators": [Skip()]}, "makes no gradient"),
        ({"tolerance": 0.0}, "tolerance must be above 0, got 0.0"),
        ({"where": lambda name, module: False}, "no layer whose weight gradient"),
    ],
)
def test_what_cannot_be_probed_is_told(change, message):
    with pytest.raises(ConfigError, match=message):
        probe(**{"estimators": [Zero()], **change})


def test_a_layer_without_gradient_is_told():
    with pytest.raises(ConfigError, match="layer '0' has a zero gradient"):
        probe_gradient(network(False), batches(16), lambda m, b: 0 * loss(m, b), [Zero()])
