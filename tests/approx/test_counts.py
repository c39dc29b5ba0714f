"""Coverage of the paper's schedules on its networks, against numbers worked out by hand."""

from __future__ import annotations

import pytest
import torch
from torch import nn

from slimgrad.approx import Alternate, EveryNthLayer, EveryNthStep, TopOne, Zero, approximate


def chain(widths, strides_or_pools):
    """3x3 convolutions in a row; "M" is a max-pool, a number the stride of the next layer."""
    layers, channels = [], 3
    for width, step in zip(widths, strides_or_pools, strict=True):
        if step == "M":
            layers.append(nn.MaxPool2d(2))
            step = 1
        layers.append(nn.Conv2d(channels, width, 3, stride=step, padding=1))
        channels = width
    return nn.Sequential(*layers)


def resnet20_convolutions():
    return chain([16] * 7 + [32] * 6 + [64] * 6, [1] * 7 + [2] + [1] * 5 + [2] + [1] * 5)


def vgg19_convolutions():
    widths = [64] * 2 + [128] * 2 + [256] * 4 + [512] * 8
    return chain(widths, [1, 1, "M", 1, "M", 1, 1, 1, "M", 1, 1, 1, "M", 1, 1, 1])


def train(model, handle, steps):
    for _ in range(steps):
        model(torch.ones(1, 3, 32, 32)).sum().backward()
        handle.step()


def numbers(handle):
    return [row.number for row in handle.report().layers if row.status == "approximate"]


# Multiply-adds of one sample: 16 full layers, two strided ones of half that, the first.
RESNET20 = 16 * 2359296 + 2 * 1179648 + 442368
RESNET20_SCHEDULE_ONE = 4 * 2359296 + 1179648


def test_resnet20_schedule_one_saves_26_percent():
    model = resnet20_convolutions()
    handle = approximate(model, Zero(), schedule=EveryNthLayer(4, start=2))
    train(model, handle, 1)
    report = handle.report()
    assert numbers(handle) == [2, 6, 10, 14, 18]
    assert report.exact_macs == RESNET20
    assert report.exact_macs - report.spent_macs == RESNET20_SCHEDULE_ONE
    assert report.saved_macs_share == pytest.approx(0.262, abs=5e-4)


def test_resnet20_top_one_spends_one_position_a_map():
    model = resnet20_convolutions()
    handle = approximate(model, TopOne(), schedule=EveryNthLayer(4, start=2))
    train(model, handle, 1)
    spent = 2 * 16 * 144 + 32 * 288 + 64 * 288 + 64 * 576
    assert handle.report().spent_macs == RESNET20 - RESNET20_SCHEDULE_ONE + spent


def test_vgg19_schedule_one_saves_31_percent():
    model = vgg19_convolutions()
    handle = approximate(model, Zero(), schedule=EveryNthLayer(4, start=2))
    train(model, handle, 1)
    assert numbers(handle) == [2, 6, 10, 14]
    assert handle.report().saved_macs_share == pytest.approx(0.308, abs=5e-4)


def test_resnet20_schedules_two_and_three_over_four_steps():
    model = resnet20_convolutions()
    handle = approximate(model, Zero(), schedule=Alternate(layers=2, steps=2))
    train(model, handle, 4)
    assert numbers(handle) == list(range(2, 20, 2))
    # Layers 2, 4, ..., 18 in two of the four batches: 2 strided layers and 7 full ones.
    assert handle.report().spent_macs == 4 * RESNET20 - 2 * (7 * 2359296 + 2 * 1179648)
    handle.restore()
    handle = approximate(model, Zero(), schedule=EveryNthStep(4))
    train(model, handle, 4)
    assert numbers(handle) == list(range(1, 20))
    assert handle.report().saved_macs_share == 0.25
