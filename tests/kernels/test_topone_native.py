"""The compiled top-1 filter gradient against plain torch."""

from __future__ import annotations

import itertools
import random

import pytest
import torch

from slimgrad.kernels import backend, topone, topone_weight_grad
from slimgrad.kernels.backend import use_backend

ISAS = backend.usable_isas()
pytestmark = pytest.mark.skipif(not ISAS, reason="the C++ kernels are not built here")
LAYOUTS = {"contiguous": torch.contiguous_format, "channels_last": torch.channels_last}
FLOAT32_EPS = 2.0**-23


@pytest.fixture(autouse=True)
def _keep_threads():
    before = torch.get_num_threads()
    yield
    torch.set_num_threads(before)


def output_size(size, kernel, stride, padding, dilation):
    return (size + 2 * padding - dilation * (kernel - 1) - 1) // stride + 1


def draw(seed, x_shape, filters, kernel, stride, padding, dilation):
    generator = torch.Generator().manual_seed(seed)
    out = [output_size(x_shape[2 + i], kernel[i], stride, padding, dilation) for i in (0, 1)]
    x = torch.randn(x_shape, generator=generator)
    return x, torch.randn((x_shape[0], filters, *out), generator=generator)


def assert_close_to_truth(got, x, grad_out, settings):
    """Within the rounding error of a map sum, a product and a sum over samples, worst case."""
    with use_backend("reference"):
        truth = topone_weight_grad(x.double(), grad_out.double(), *settings)
    terms = grad_out[0, 0].numel() + grad_out.shape[0] + 2
    size = grad_out.double().abs().sum((0, 2, 3)) * x.abs().max()
    assert got.shape == truth.shape
    assert ((got - truth).abs() <= terms * FLOAT32_EPS * size.reshape(-1, 1, 1, 1)).all()


def on_every_isa_and_thread_count(x, grad_out, settings, product=False):
    """The result, after checking that none of them changes a bit of it."""
    runs = itertools.product(ISAS, (1, 2)) if product else [*((i, 1) for i in ISAS), (ISAS[-1], 2)]
    results = []
    for isa, threads in runs:
        torch.set_num_threads(threads)
        with use_backend("native", isa):
            results.append(topone_weight_grad(x, grad_out, *settings))
    assert all(torch.equal(results[0], other) for other in results[1:])
    return results[0]


def sampled_grid(count):
    grid = itertools.product(
        [(1, 1), (3, 3), (5, 5), (3, 1)],  # kernel
        [1, 2],  # stride
        [0, 1, 2],  # padding
        [1, 2],  # dilation
        ["one", "two", "depthwise"],  # groups
        list(itertools.product(LAYOUTS, LAYOUTS)),  # of x and of grad_out
        [1, 5],  # batch
        [1, 3, 16, 20, 33, 64],  # channels of a group
        [1, 16, 20, 64],  # filters of a group
    )
    return random.Random(0).sample(list(grid), count)


@pytest.mark.parametrize("part", range(8))
def test_equals_the_reference_over_the_grid(part):
    for seed, case in enumerate(sampled_grid(200)[part::8]):
        kernel, stride, padding, dilation, grouping, layouts, samples, channels, filters = case
        groups = {"one": 1, "two": 2, "depthwise": channels}[grouping]
        width = 1 if grouping == "depthwise" else channels
        filters = 2 if grouping == "depthwise" else filters
        shape = (samples, width * groups, 11, 10)
        x, grad_out = draw(seed, shape, filters * groups, kernel, stride, padding, dilation)
        x = x.contiguous(memory_format=LAYOUTS[layouts[0]])
        grad_out = grad_out.contiguous(memory_format=LAYOUTS[layouts[1]])
        settings = (kernel, stride, padding, dilation, groups, 1.0)
        got = on_every_isa_and_thread_count(x, grad_out, settings)
        assert_close_to_truth(got, x, grad_out, settings)


# Each makes the kernel cut its work in another way: channels and samples in several blocks, the
# input read in place in several blocks, filters that fill no whole vector.
BLOCKED = {
    "channel and sample blocks": ((20, 144, 16, 16), 136, (3, 3)),
    "sample blocks in place": ((20, 144, 24, 24), 16, (3, 3)),
    "one sample larger than a block": ((2, 144, 48, 48), 20, (3, 1)),
    "small maps": ((9, 130, 4, 4), 70, (3, 3)),
    "tiny maps": ((9, 130, 2, 2), 70, (3, 3)),
}


@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize("name", BLOCKED)
def test_equals_the_reference_where_work_is_cut_up(name, layout):
    shape, filters, kernel = BLOCKED[name]
    x, grad_out = draw(11, shape, filters, kernel, 1, 1, 1)
    x, grad_out = (t.contiguous(memory_format=LAYOUTS[layout]) for t in (x, grad_out))
    settings = (kernel, 1, 1, 1, 1, 1.0)
    got = on_every_isa_and_thread_count(x, grad_out, settings, product=True)
    assert_close_to_truth(got, x, grad_out, settings)


STRIDED = {
    "every second column": lambda x: x[..., ::2],
    "every second channel": lambda x: x[:, ::2],
    "inner window": lambda x: x[:, :, 1:-1, 1:-1],
    "channels_last window": lambda x: x.contiguous(memory_format=torch.channels_last)[..., 1:-1],
    "one number everywhere": lambda x: x[:1, :1, :1, :1].expand(x.shape),
    "one sample repeated": lambda x: x[:1].expand(x.shape),
    "rows and columns swapped": lambda x: x.transpose(2, 3),
}


@pytest.mark.parametrize("name", STRIDED)
def test_any_strides(name):
    generator = torch.Generator().manual_seed(5)
    x = STRIDED[name](torch.randn((6, 12, 10, 10), generator=generator))
    grad_out = torch.randn((6, 8, *x.shape[2:]), generator=generator)
    settings = (3, 1, 1, 1, 1, 1.0)
    assert_close_to_truth(
        on_every_isa_and_thread_count(x, grad_out, settings), x, grad_out, settings
    )
    grad_out = STRIDED[name](torch.randn((6, 12, 10, 10), generator=generator))
    x = torch.randn((6, 4, *grad_out.shape[2:]), generator=generator)
    assert_close_to_truth(
        on_every_isa_and_thread_count(x, grad_out, settings), x, grad_out, settings
    )


def make_maps(layout, filters, size):
    x = torch.randn((3, 4, size, size), generator=torch.Generator().manual_seed(6))
    grad_out = torch.zeros(3, filters, size, size)
    return tuple(t.contiguous(memory_format=LAYOUTS[layout]) for t in (x, grad_out))


# 7 and 18 filters are no whole vectors; 7 x 7 maps are small, 11 x 11 ones are not.
map_kinds = pytest.mark.parametrize(
    ("layout", "filters", "size"), list(itertools.product(LAYOUTS, (7, 18, 80), (7, 11)))
)


@map_kinds
def test_ties_go_to_the_lowest_index(layout, filters, size):
    x, grad_out = make_maps(layout, filters, size)
    for k in range(filters):  # the two extremes have opposite signs and differ in place
        grad_out[:, k].flatten(1)[:, [k % 40, 48]] = torch.tensor([-2.0, 2.0])
        grad_out[:, k, -1, -1] += 1.0 if size == 11 else 0.0
    grad_out[:, :, -1, -2] = 0.5
    settings = (3, 1, 1, 1, 1, 1.0)
    got = on_every_isa_and_thread_count(x, grad_out, settings)
    assert got.abs().max() > 0
    assert_close_to_truth(got, x, grad_out, settings)


@map_kinds
def test_zero_maps_add_nothing(layout, filters, size):
    x, grad_out = make_maps(layout, filters, size)
    x[0, 0, 0, 0] = torch.inf  # seen from the first place, which a zero map must not choose
    settings = (3, 1, 1, 1, 1, 1.0)
    got = on_every_isa_and_thread_count(x, grad_out, settings)
    assert torch.equal(got, torch.zeros_like(got))


@map_kinds
@pytest.mark.parametrize("bad", [torch.nan, torch.inf, -torch.inf])
def test_non_finite_gradients_show(layout, filters, size, bad):
    x, grad_out = make_maps(layout, filters, size)
    grad_out += torch.randn(grad_out.shape, generator=torch.Generator().manual_seed(7))
    grad_out[1, filters - 1, 3, 4] = bad
    settings = (3, 1, 1, 1, 1, 1.0)
    got = [topone_weight_grad(x, grad_out, *settings)]
    for isa in ISAS:
        with use_backend("native", isa):
            got.append(topone_weight_grad(x, grad_out, *settings))
    with use_backend("reference"):
        truth = topone_weight_grad(x, grad_out, *settings)
    assert not truth[-1].isfinite().any()
    assert truth[:-1].isfinite().all()
    for one in got:
        assert torch.allclose(one, truth, rtol=1e-4, atol=1e-4, equal_nan=True)


def test_taps_in_the_padding_add_nothing_even_to_infinite_gradients():
    x, grad_out = make_maps("contiguous", 16, 7)
    grad_out[0, :, 0, 0] = torch.inf
    settings = (3, 1, 1, 1, 1, 1.0)
    got = on_every_isa_and_thread_count(x, grad_out, settings)
    with use_backend("reference"):
        truth = topone_weight_grad(x, grad_out, *settings)
    assert torch.equal(got[:, :, 0], torch.zeros(16, 4, 3))
    assert torch.equal(truth[:, :, 0], torch.zeros(16, 4, 3))
    assert not got[:, :, 1:, 1:].isfinite().any()


def test_scale_is_applied():
    x, grad_out = draw(8, (5, 3, 6, 6), 4, (3, 3), 1, 1, 1)
    with use_backend("native"):
        whole = topone_weight_grad(x, grad_out, 3, 1, 1)
        part = topone_weight_grad(x, grad_out, 3, 1, 1, scale=1 / 128)
    assert torch.equal(part, whole / 128)


def test_samples_too_large_for_32_bit_offsets_are_served_by_the_reference(monkeypatch):
    x, grad_out = draw(9, (2, 3, 6, 6), 4, (3, 3), 1, 1, 1)
    with use_backend("reference"):
        truth = topone_weight_grad(x, grad_out, 3, 1, 1)
    calls = []
    plain = topone.reference.topone_weight_grad
    monkeypatch.setattr(
        topone.reference, "topone_weight_grad", lambda *a: calls.append(1) or plain(*a)
    )
    for limit, expected in ((3 * 8 * 8 + 1, 0), (3 * 8 * 8, 1)):
        monkeypatch.setattr(topone, "_NATIVE_SAMPLE_LIMIT", limit)
        got = topone_weight_grad(x, grad_out, 3, 1, 1)
        assert len(calls) == expected
    assert torch.equal(got, truth)


def test_the_module_refuses_shapes_that_do_not_belong_together():
    module = backend.native_module()
    assert module is not None
    x, grad_out, result = torch.ones(2, 4, 5, 5), torch.ones(2, 6, 5, 5), torch.ones(6, 4, 3, 3)
    layout, pair = (False, False, False), (1, 1)
    with pytest.raises(ValueError, match="do not belong together"):
        module.topone_weight_grad(x, grad_out, result[:5], *layout, pair, pair, pair, 1, 1.0, False)
    with pytest.raises(TypeError):  # a copy of the result would be filled and lost
        module.topone_weight_grad(
            x, grad_out, result.transpose(2, 3), *layout, pair, pair, pair, 1, 1.0, False
        )
