"""Products of a matrix and a thin one, on every backend and instruction set."""

from __future__ import annotations

import pytest
import torch

from slimgrad.core.errors import ConfigError
from slimgrad.kernels import backend, thin_product
from slimgrad.kernels.backend import use_backend

ISAS = backend.usable_isas()


def draw(*shape, seed=0):
    return torch.randn(shape, generator=torch.Generator().manual_seed(seed))


def factor_for(matrix, rank, transposed):
    return draw(matrix.shape[0 if transposed else 1], rank, seed=1)


@pytest.mark.skipif(not ISAS, reason="the C++ kernels are not built here")
@pytest.mark.parametrize("transposed", [False, True])
@pytest.mark.parametrize(
    "shape", [(0, 3), (3, 0), (1, 1), (2, 15), (3, 16), (5, 17), (7, 100), (2, 1024), (3, 1025)]
)
def test_every_instruction_set_gives_the_bits_of_the_reference(shape, transposed):
    for scale in (1.0, 1e-42, 1e30):
        matrix = draw(*shape) * scale
        for rank in (0, 1, 3, 4, 5, 9):
            factor = factor_for(matrix, rank, transposed)
            with use_backend("reference"):
                expected = thin_product(matrix, factor, transposed=transposed)
            for isa in ISAS:
                with use_backend("native", isa):
                    assert torch.equal(
                        thin_product(matrix, factor, transposed=transposed), expected
                    )


@pytest.mark.parametrize("name", ["reference", "auto"])
@pytest.mark.parametrize("transposed", [False, True])
def test_it_is_the_product(name, transposed):
    matrix = draw(30, 200)
    factor = factor_for(matrix, 3, transposed)
    with use_backend(name):
        result = thin_product(matrix, factor, transposed=transposed)
        strided = thin_product(matrix.T.contiguous().T, factor, transposed=transposed)
    truth = (matrix.T if transposed else matrix).double() @ factor.double()
    # At most 200 products and sums, each rounded to 2**-24 of at most 200 * 4 * 4.
    assert torch.allclose(result.double(), truth, atol=200 * 2.0**-24 * 16 * 10, rtol=0)
    assert torch.equal(result, strided)


def test_non_finite_entries_reach_the_result():
    matrix = torch.ones(3, 20)
    matrix[1, 19] = torch.inf
    assert not thin_product(matrix, torch.ones(20, 1))[1].isfinite()
    assert not thin_product(matrix, torch.ones(3, 1), transposed=True)[19].isfinite()


def test_wrong_arguments_are_named():
    with pytest.raises(ConfigError, match="matrix must be two-dimensional float32"):
        thin_product(torch.ones(3), torch.ones(3, 1))
    with pytest.raises(ConfigError, match=r"factor must be .*torch\.float64"):
        thin_product(torch.ones(3, 2), torch.ones(2, 1, dtype=torch.float64))
    with pytest.raises(ConfigError, match=r"shape \(3, 1\) does not fit .* \(3, 2\)"):
        thin_product(torch.ones(3, 2), torch.ones(3, 1))
    with pytest.raises(ConfigError, match=r"\(3, 2\), transposed"):
        thin_product(torch.ones(3, 2), torch.ones(2, 1), transposed=True)
