from __future__ import annotations

import pytest
import torch
from torch import nn

from slimgrad.core.errors import ConfigError
from slimgrad.experiments.models import MODELS, ImageShape, build_model, make_model

CIFAR, DIGITS = ImageShape(3, 32, 10), ImageShape(1, 28, 10)


def convolutions(model: nn.Module) -> list[nn.Conv2d]:
    return [layer for layer in model.modules() if isinstance(layer, nn.Conv2d)]


def parameters(model: nn.Module) -> int:
    return sum(parameter.numel() for parameter in model.parameters())


@pytest.mark.parametrize(
    ("name", "count", "numbers"),
    [("resnet14", 13, 172_506), ("resnet20", 19, 269_722), ("vgg19", 16, 20_035_018)],
)
def test_layers_and_parameters(name: str, count: int, numbers: int):
    with torch.device("meta"):
        model = build_model(name, CIFAR)
    layers = convolutions(model)
    assert [layer.kernel_size for layer in layers] == [(3, 3)] * count
    assert parameters(model) == numbers


def test_resnet18_has_the_parameters_of_its_paper():
    # 11,173,962 with 10 classes and a 3x3 first convolution.
    with torch.device("meta"):
        assert parameters(build_model("resnet18", CIFAR)) == 11_173_962


def test_schedule_1_meets_the_layers_of_the_paper():
    layers = convolutions(make_model("resnet20", CIFAR))
    chosen = [(layer.in_channels, layer.out_channels, layer.stride[0]) for layer in layers[1::4]]
    assert chosen == [(16, 16, 1), (16, 16, 1), (32, 32, 1), (32, 64, 2), (64, 64, 1)]


def test_cnn2_has_the_sizes_of_the_paper():
    model = build_model("cnn2", CIFAR)
    layers = convolutions(model)
    assert [(layer.in_channels, layer.out_channels) for layer in layers] == [(3, 64), (64, 64)]
    linears = [layer for layer in model.modules() if isinstance(layer, nn.Linear)]
    assert [layer.out_features for layer in linears] == [384, 192, 10]
    assert linears[0].in_features == 64 * 8 * 8


@pytest.mark.parametrize(
    ("text", "shape"),
    [
        ("cnn2", CIFAR),
        ("cnn2", DIGITS),
        ("cnn2", ImageShape(2, 5, 3)),
        ("resnet14", DIGITS),
        ("resnet18", CIFAR),
        ("resnet20", CIFAR),
        ("vgg19", CIFAR),
    ],
)
def test_networks_score_classes_and_every_parameter_learns(text: str, shape: ImageShape):
    model = make_model(text, shape, {"width": 4})
    scores = model(torch.randn(3, shape.channels, shape.size, shape.size))
    assert scores.shape == (3, shape.classes)
    scores.square().sum().backward()
    assert all(parameter.grad is not None for parameter in model.parameters())


def test_parameters_depend_on_the_seed_alone():
    state = torch.random.get_rng_state()
    first = make_model("resnet14", CIFAR, seed=4).state_dict()
    torch.manual_seed(99)
    again = make_model("resnet14", CIFAR, seed=4).state_dict()
    other = make_model("resnet14", CIFAR, seed=5).state_dict()
    torch.random.set_rng_state(state)
    make_model("resnet14", CIFAR, seed=4)
    assert torch.equal(torch.random.get_rng_state(), state)
    assert all(torch.equal(first[name], again[name]) for name in first)
    assert not torch.equal(first["conv.weight"], other["conv.weight"])
    assert all(bool(value.isfinite().all()) for value in first.values())


def test_weights_have_the_variance_of_their_fan_in():
    model = make_model("cnn2", CIFAR)
    # 102,400 normal draws: the variance of their mean square is 2 / n, so 6.5 deviations are
    # 2.9 %; a false alarm has probability below 1e-10.
    weight = model.get_parameter("conv2.weight").detach()
    assert float(weight.square().mean()) == pytest.approx(2 / (64 * 25), rel=0.029)
    assert float(model.get_parameter("conv2.bias").detach().abs().max()) == 0


@pytest.mark.parametrize(
    ("name", "shape", "settings", "message"),
    [
        ("vgg19", DIGITS, {}, "vgg19 needs images of at least 32x32, not 28x28"),
        ("cnn2", ImageShape(1, 3, 10), {}, "cnn2 needs images of at least 4x4"),
        ("resnet20", ImageShape(1, 3, 10), {}, "resnet needs images of at least 4x4"),
        ("cnn2", CIFAR, {"width": 0}, "width = 0: must be at least 1"),
        ("resnet14", CIFAR, {"width": -1}, "width = -1: must be at least 1"),
        ("resnet18", CIFAR, {"width": 0}, "width = 0: must be at least 1"),
        ("resnet18", ImageShape(1, 4, 10), {}, "resnet18 needs images of at least 8x8"),
        ("vgg19", CIFAR, {"width": 0}, "width = 0: must be at least 1"),
        ("cnn2", CIFAR, {"width": "wide"}, "network cnn2: '<' not supported"),
        ("resnet-20", CIFAR, {}, "did you mean 'resnet20'"),
    ],
)
def test_what_a_network_cannot_be_is_told(name, shape, settings, message):
    with pytest.raises(ConfigError, match=message):
        build_model(name, shape, settings)


def test_all_networks_are_registered():
    assert list(MODELS) == ["cnn2", "resnet14", "resnet18", "resnet20", "vgg19"]
