"""The position kernel against its plain-torch definition, and against torch's own gradient."""

from __future__ import annotations

import pytest
import torch

from slimgrad import kernels
from slimgrad.core.errors import ConfigError
from slimgrad.kernels import backend
from slimgrad.kernels.backend import use_backend
from slimgrad.kernels.reference import positions as reference

LAYOUTS = {"contiguous": torch.contiguous_format, "channels_last": torch.channels_last}
# (N, C, H, W, K), kernel, stride, padding, dilation, groups
GEOMETRIES = {
    "3x3": ((3, 16, 9, 7, 20), (3, 3), (1, 1), (1, 1), (1, 1), 1),
    "odd channels": ((2, 5, 8, 8, 3), (3, 3), (1, 1), (1, 1), (1, 1), 1),
    "stride 2": ((3, 8, 9, 10, 16), (3, 3), (2, 2), (1, 1), (1, 1), 1),
    "5x5 no padding": ((2, 6, 9, 9, 9), (5, 5), (1, 1), (0, 0), (1, 1), 1),
    "1x1": ((4, 24, 5, 5, 17), (1, 1), (1, 1), (0, 0), (1, 1), 1),
    "dilation": ((2, 7, 11, 9, 8), (3, 2), (1, 2), (2, 1), (2, 3), 1),
    "groups": ((2, 12, 6, 6, 20), (3, 3), (1, 1), (1, 1), (1, 1), 4),
    "depthwise": ((2, 10, 6, 6, 10), (3, 3), (1, 1), (1, 1), (1, 1), 10),
    "narrow map": ((40, 64, 2, 2, 24), (3, 3), (1, 1), (1, 1), (1, 1), 1),
    "padding beyond": ((2, 4, 3, 3, 4), (3, 3), (1, 1), (3, 3), (1, 1), 1),
    "many positions": ((6, 16, 16, 16, 16), (3, 3), (1, 1), (1, 1), (1, 1), 1),
    "one column": ((2, 3, 6, 1, 40), (3, 1), (1, 1), (1, 0), (1, 1), 1),
}


def make(name, layout="contiguous", dtype=torch.float32):
    (n, c, h, w, k), kernel, stride, padding, dilation, groups = GEOMETRIES[name]
    generator = torch.Generator().manual_seed(len(name))
    x = torch.randn(n, c, h, w, generator=generator, dtype=dtype)
    weight = torch.zeros(k, c // groups, *kernel, dtype=dtype)
    output = torch.conv2d(x, weight, None, stride, padding, dilation, groups)
    grad_out = torch.randn(output.shape, generator=generator, dtype=dtype)
    x, grad_out = (t.contiguous(memory_format=LAYOUTS[layout]) for t in (x, grad_out))
    return x, grad_out, (kernel, stride, padding, dilation, groups)


def exact(x, grad_out, geometry):
    kernel, stride, padding, dilation, groups = geometry
    weight = x.new_zeros(grad_out.shape[1], x.shape[1] // groups, *kernel)
    return torch.ops.aten.convolution_backward(
        grad_out,
        x,
        weight,
        None,
        stride,
        padding,
        dilation,
        False,
        (0, 0),
        groups,
        (False, True, False),
    )[1]


def close(found, expected):
    scale = float(expected.abs().max()) + 1e-30
    assert found.shape == expected.shape
    assert float((found - expected).abs().max()) <= 2e-5 * scale


def isas():
    return [pytest.param(isa, id=isa) for isa in backend.usable_isas()]


@pytest.mark.parametrize("isa", isas())
@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize("name", GEOMETRIES)
def test_all_positions_give_the_exact_gradient(name, layout, isa):
    x, grad_out, geometry = make(name, layout)
    with use_backend("native", isa):
        found = kernels.position_weight_grad(x, grad_out, *geometry)
    close(found, exact(x.double(), grad_out.double(), geometry).float())
    last = not x.is_contiguous()
    assert found.is_contiguous(memory_format=torch.channels_last if last else LAYOUTS["contiguous"])


@pytest.mark.parametrize("isa", isas())
@pytest.mark.parametrize("name", GEOMETRIES)
def test_listed_positions_means_and_weights_equal_the_reference(name, isa):
    x, grad_out, geometry = make(name, "channels_last")
    positions = grad_out.numel() // grad_out.shape[1]
    generator = torch.Generator().manual_seed(7)
    rows = (torch.rand(positions, generator=generator) < 0.3).nonzero().flatten().int()
    weights = torch.rand(len(rows), generator=generator) * 4
    for means in (None, grad_out.mean((2, 3))):
        chosen = {"rows": rows, "weights": weights, "means": means}
        with use_backend("native", isa):
            found = kernels.position_weight_grad(x, grad_out, *geometry, **chosen)
        with use_backend("reference"):
            slow = kernels.position_weight_grad(x, grad_out, *geometry, **chosen)
        close(found, slow)


@pytest.mark.parametrize("rows", [[], [0], [5], list(range(12))])
def test_few_rows(rows):
    x, grad_out, geometry = make("narrow map")
    listed = {"rows": torch.tensor(rows, dtype=torch.int32), "weights": torch.ones(len(rows))}
    found = kernels.position_weight_grad(x, grad_out, *geometry, **listed)
    slow = reference.position_weight_grad(x, grad_out, *listed.values(), None, *geometry)
    close(found, slow)


@pytest.mark.parametrize("dtype", [torch.float64, torch.bfloat16])
def test_other_dtypes_are_served_by_plain_torch(dtype):
    x, grad_out, geometry = make("3x3", dtype=dtype)
    found = kernels.position_weight_grad(x, grad_out, *geometry)
    assert found.dtype == dtype
    wanted = exact(x.double(), grad_out.double(), geometry)
    limit = 1e-12 if dtype == torch.float64 else 0.01
    assert float((found.double() - wanted).abs().max() / wanted.abs().max()) < limit


@pytest.mark.parametrize("name", ["many positions", "3x3", "narrow map"])
def test_the_number_of_threads_changes_nothing(name):
    x, grad_out, geometry = make(name, "channels_last")
    before = torch.get_num_threads()
    results = []
    try:
        for threads in (1, 2, 3):
            torch.set_num_threads(threads)
            results.append(kernels.position_weight_grad(x, grad_out, *geometry))
    finally:
        torch.set_num_threads(before)
    assert torch.equal(results[0], results[1])
    assert torch.equal(results[0], results[2])


def test_strided_and_expanded_tensors():
    x, grad_out, geometry = make("3x3")
    wide = torch.randn(3, 40, 9, 7)[:, ::2][:, :16]
    expanded = grad_out[:, :1].expand_as(grad_out)
    found = kernels.position_weight_grad(wide, expanded, *geometry)
    close(found, exact(wide.contiguous(), expanded.contiguous(), geometry))
    del x


@pytest.mark.parametrize("isa", isas())
@pytest.mark.parametrize("k", [1, 7, 16, 33, 64])
@pytest.mark.parametrize("sizes", [(1, 1, 1), (2, 5, 3), (3, 4, 8)])
def test_norms_and_means_equal_the_reference(k, sizes, isa):
    n, p, q = sizes
    generator = torch.Generator().manual_seed(k)
    grad_out = torch.randn(n, k, p, q, generator=generator)
    grad_out = grad_out.contiguous(memory_format=torch.channels_last)
    with use_backend("native", isa):
        norms = kernels.row_norms(grad_out)
        means, centred = kernels.centred_row_norms(grad_out)
    torch.testing.assert_close(norms, reference.row_norms(grad_out), rtol=1e-5, atol=1e-6)
    slow_means, slow = reference.centred_row_norms(grad_out)
    torch.testing.assert_close(means, slow_means, rtol=1e-5, atol=1e-6)
    torch.testing.assert_close(centred, slow, rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize("isa", isas())
@pytest.mark.parametrize("name", GEOMETRIES)
def test_patch_sums_equal_the_reference(name, isa):
    x, _, (kernel, stride, padding, dilation, _) = make(name, "channels_last")
    with use_backend("native", isa):
        found = kernels.patch_sums(x, kernel, stride, padding, dilation)
    slow = reference.patch_sums(x.double(), kernel, stride, padding, dilation).float()
    torch.testing.assert_close(found, slow, rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize("n", [0, 1, 7, 8, 9, 1000])
@pytest.mark.parametrize("share", [0.01, 0.3, 0.9, 2.0])
def test_samples_equal_the_reference(n, share):
    scores = torch.rand(n, generator=torch.Generator().manual_seed(n)) ** 6
    wanted = max(share * n, 0.5)
    for start in (0.0, 0.4, 0.999):
        rows, weights = kernels.systematic_sample(scores, wanted, start)
        slow_rows, slow_weights = reference.systematic_sample(scores, wanted, start)
        assert torch.equal(rows, slow_rows)
        assert torch.equal(weights, slow_weights)
        assert abs(len(rows) - min(wanted, n)) <= 2 + 0.02 * wanted


def test_every_row_is_taken_with_the_probability_its_weight_says():
    # A row's share of 4096 evenly spaced starts is its inclusion probability to 1 / 4096.
    scores = torch.tensor([0.0, 1.0, 5.0, 0.2, 40.0, 3.0, 0.0, 2.0])
    times, inverse = torch.zeros(8), torch.zeros(8)
    for place in range(4096):
        rows, weights = kernels.systematic_sample(scores, 4, (place + 0.5) / 4096)
        times[rows.long()] += 1 / 4096
        inverse[rows.long()] = 1 / weights
    torch.testing.assert_close(times, inverse, rtol=0, atol=1 / 2048)
    assert times[4] == 1
    assert times[0] == times[6] == 0


def test_a_score_that_is_not_finite_keeps_every_row():
    rows, weights = kernels.systematic_sample(torch.tensor([1.0, float("nan"), 2.0]), 1, 0.0)
    assert rows.tolist() == [0, 1, 2]
    assert weights.tolist() == [1.0, 1.0, 1.0]


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"rows": torch.zeros(1, dtype=torch.int32)}, "rows and weights belong together"),
        ({"rows": torch.zeros(1).long(), "weights": torch.ones(1)}, "rows must be flat int32"),
        ({"rows": torch.tensor([0, 1]).int(), "weights": torch.ones(1)}, "2 rows need as many"),
        ({"rows": torch.tensor([1, 1]).int(), "weights": torch.ones(2)}, "must ascend strictly"),
        ({"rows": torch.tensor([-1]).int(), "weights": torch.ones(1)}, "within 0 to 188"),
        ({"rows": torch.tensor([189]).int(), "weights": torch.ones(1)}, "within 0 to 188"),
        ({"means": torch.zeros(3, 3)}, r"means must be torch\.float32 of shape \(3, 20\)"),
    ],
)
def test_wrong_arguments_are_refused(change, message):
    x, grad_out, geometry = make("3x3")
    with pytest.raises(ConfigError, match=message):
        kernels.position_weight_grad(x, grad_out, *geometry, **change)


@pytest.mark.parametrize(
    ("scores", "wanted", "start", "message"),
    [
        (torch.ones(3).double(), 1, 0.0, "scores must be flat float32"),
        (torch.ones(3, 1), 1, 0.0, "scores must be flat float32"),
        (torch.ones(3), 0, 0.0, "wanted must be above 0"),
        (torch.ones(3), 1, 1.0, r"start in \[0, 1\)"),
    ],
)
def test_wrong_samples_are_refused(scores, wanted, start, message):
    with pytest.raises(ConfigError, match=message):
        kernels.systematic_sample(scores, wanted, start)


def test_the_operation_passes_torchs_own_checks():
    x, grad_out, (kernel, stride, padding, dilation, groups) = make("3x3")
    rows, weights = torch.tensor([0, 5], dtype=torch.int32), torch.tensor([1.0, 2.0])
    arguments = (x, grad_out, rows, weights, None, kernel, stride, padding, dilation, groups)
    torch.library.opcheck(torch.ops.slimgrad.position_weight_grad.default, arguments)
    with pytest.raises(ConfigError, match="cannot be differentiated again"):
        kernels.position_weight_grad(x.requires_grad_(), grad_out, 3, padding=1).sum().backward()
