"""PooledMeans, WalshPairs and BlockMeans against sums over blocks written out one by one."""

from __future__ import annotations

import pytest
import torch
from estimator_cases import GEOMETRIES, fix_draw, over_grid, product, table, tensors, variance

from slimgrad import kernels
from slimgrad.approx import BlockMeans, LayerGeometry, PooledMeans, RowSampling, WalshPairs
from slimgrad.approx.estimators import blockmeans, rowsampling, walshpairs
from slimgrad.approx.estimators.blocks import as_blocks
from slimgrad.approx.estimators.exact import exact_weight_grad
from slimgrad.approx.estimators.walshpairs import walsh_gradients, walsh_term

CASES = [
    *GEOMETRIES,
    LayerGeometry("conv2d", (8, 1, 3, 3), stride=(2, 2), padding=(1, 1), groups=4),
]
HADAMARD = torch.tensor(
    [[1, 1, 1, 1], [1, -1, 1, -1], [1, 1, -1, -1], [1, -1, -1, 1]], dtype=torch.float64
)


def tiles(x, grad_out, geometry, block):
    """Gradients (B, b b, K) and patches (B, b b, C R S) of all blocks, positions in row order."""
    maps = as_blocks(x.double(), grad_out.double(), geometry, block)
    samples, _, rows, columns = maps.grad_out.shape
    shape = LayerGeometry(
        "conv2d",
        (maps.grad_out.shape[1], maps.x.shape[1] // maps.groups, *maps.kernel_size),
        maps.stride,
        maps.padding,
        maps.dilation,
        maps.groups,
    )
    cut = (samples, rows // block, block, columns // block, block, -1)
    return [
        t.view(cut).transpose(2, 3).flatten(0, 2).flatten(1, 2)
        for t in table(maps.x, maps.grad_out, shape)
    ]


@pytest.mark.parametrize("block", [2, 3])
@pytest.mark.parametrize("geometry", CASES, ids=str)
def test_blocks_hold_the_whole_gradient(geometry, block):
    x, grad_out = tensors(geometry)
    gradients, seen = (t.flatten(0, 1) for t in tiles(x, grad_out, geometry, block))
    exact = exact_weight_grad(x.double(), grad_out.double(), geometry)
    torch.testing.assert_close(product(gradients, seen, geometry), exact)
    assert len(gradients) % block**2 == 0


@pytest.mark.parametrize("block", [2, 3])
@pytest.mark.parametrize("geometry", CASES, ids=str)
def test_pooled_means_follow_the_definition(geometry, block):
    x, grad_out = tensors(geometry)
    means = [t.mean(1) for t in tiles(x, grad_out, geometry, block)]
    expected = block**2 * product(*means, geometry)
    found = PooledMeans(block).weight_grad(x, grad_out, geometry, 0)
    torch.testing.assert_close(found, expected.float(), rtol=1e-4, atol=1e-4)


def test_pooled_means_are_exact_where_blocks_are_even():
    geometry = LayerGeometry("conv2d", (6, 4, 1, 1))
    generator = torch.Generator().manual_seed(4)
    even = torch.randn(2, 4, 3, 4, generator=generator)
    even = even.repeat_interleave(2, 2).repeat_interleave(2, 3)
    grad_out = torch.randn(2, 6, 6, 8, generator=generator)
    found = PooledMeans().weight_grad(even, grad_out, geometry, 0)
    torch.testing.assert_close(found, exact_weight_grad(even, grad_out, geometry))


def walsh_terms(x, grad_out, geometry):
    gradients, seen = tiles(x, grad_out, geometry, 2)
    return [
        product(*(torch.einsum("i,bik->bk", signs, t) for t in (gradients, seen)), geometry) / 4
        for signs in HADAMARD
    ]


@pytest.mark.parametrize("geometry", CASES, ids=str)
def test_walsh_terms_follow_the_definition_and_add_up(geometry):
    x, grad_out = tensors(geometry)
    expected = walsh_terms(x, grad_out, geometry)
    maps = as_blocks(x, grad_out, geometry, 2)
    gradients = walsh_gradients(maps.grad_out)
    for k, term in enumerate(expected):
        found = walsh_term(maps, gradients, k).reshape(geometry.weight_shape)
        torch.testing.assert_close(found, term.float(), rtol=1e-4, atol=1e-4)
    exact = exact_weight_grad(x.double(), grad_out.double(), geometry)
    torch.testing.assert_close(sum(expected), exact)


@pytest.mark.parametrize("odds", ["gradient", "even"])
@pytest.mark.parametrize("geometry", CASES, ids=str)
def test_walsh_pairs_have_the_mean_and_the_variance_of_the_formula(geometry, odds, monkeypatch):
    """All three draws, weighted with their probabilities."""
    x, grad_out = tensors(geometry)
    estimator = WalshPairs(odds=odds)
    blocks = as_blocks(x, grad_out, geometry, 2)
    shares = estimator.probabilities(walsh_gradients(blocks.grad_out))
    assert sum(shares) == pytest.approx(1)
    found = []
    for k in range(3):
        fix_draw(monkeypatch, walshpairs, sum(shares[:k]) + shares[k] / 2)
        found.append(estimator.weight_grad(x, grad_out, geometry, 0).double())
    mean = sum(share * estimate for share, estimate in zip(shares, found, strict=True))
    exact = exact_weight_grad(x.double(), grad_out.double(), geometry)
    torch.testing.assert_close(mean, exact, rtol=1e-4, atol=1e-4)
    terms = walsh_terms(x, grad_out, geometry)[1:]
    spread = sum(
        share * float((estimate - exact).square().sum())
        for share, estimate in zip(shares, found, strict=True)
    )
    expected = sum(
        float(term.square().sum()) / share for share, term in zip(shares, terms, strict=True)
    ) - float(sum(terms).square().sum())
    assert spread == pytest.approx(expected, rel=1e-3)


def test_odds_follow_the_gradient_and_leave_none_out():
    grad_out = torch.ones(1, 1, 4, 4)
    grad_out[..., 1::2] = -1  # only columns differ
    shares = WalshPairs().probabilities(walsh_gradients(grad_out))
    assert shares == pytest.approx((0.9 + 0.1 / 3, 0.1 / 3, 0.1 / 3))
    assert WalshPairs().probabilities(walsh_gradients(grad_out * 0)) == (1 / 3,) * 3
    assert WalshPairs(odds="even").probabilities(walsh_gradients(grad_out)) == pytest.approx(
        (1 / 3,) * 3
    )


@pytest.mark.parametrize("block", [2, 3])
@pytest.mark.parametrize("geometry", CASES, ids=str)
def test_block_means_follow_the_definition(geometry, block, monkeypatch):
    x, grad_out = tensors(geometry)
    maps = as_blocks(x, grad_out, geometry, block)
    gradients, seen = tiles(x, grad_out, geometry, block)
    rest, apart = (t - t.mean(1, keepdim=True) for t in (gradients, seen))
    whole = block**2 * product(gradients.mean(1), seen.mean(1), geometry)
    # Drawn in the order of positions, from block order.
    samples, _, rows, columns = maps.grad_out.shape
    order = torch.arange(maps.rows).view(samples, rows // block, block, columns // block, block)
    order = order.transpose(2, 3).flatten()
    in_order = torch.empty(maps.rows, rest.shape[2], dtype=torch.float64)
    in_order[order] = rest.flatten(0, 1)
    patches = torch.empty(maps.rows, seen.shape[2], dtype=torch.float64)
    patches[order] = apart.flatten(0, 1)
    norms = in_order.float().norm(dim=1)
    drawn, weights = kernels.systematic_sample(norms, 0.3 * maps.rows, 0.57)
    part = in_order[drawn.long()] * weights[:, None]
    expected = whole + product(part, patches[drawn.long()], geometry)
    fix_draw(monkeypatch, blockmeans, 0.57)
    found = BlockMeans(0.3, block).weight_grad(x, grad_out, geometry, 0)
    torch.testing.assert_close(found, expected.float(), rtol=1e-3, atol=1e-3)


def test_block_means_are_quieter_than_rows_where_neighbours_agree(monkeypatch):
    geometry = LayerGeometry("conv2d", (6, 4, 3, 3), padding=(1, 1))
    generator = torch.Generator().manual_seed(3)
    smooth = [
        torch.randn(3, n, 4, 4, generator=generator).repeat_interleave(2, 2).repeat_interleave(2, 3)
        + 0.2 * torch.randn(3, n, 8, 8, generator=generator)
        for n in (4, 6)
    ]
    spread = [
        variance(over_grid(monkeypatch, module, estimator, *smooth, geometry, 100))
        for module, estimator in ((blockmeans, BlockMeans(0.25)), (rowsampling, RowSampling(0.25)))
    ]
    assert spread[0] < spread[1] / 10
