"""From the values inside a sparse or a low-rank frame to the vector it stands for."""

from __future__ import annotations

import numpy as np
import torch

from slimgrad.comm.frame import Frame
from slimgrad.comm.header import HEADER_BYTES, Header
from slimgrad.comm.places import CodedPlaces, decode_places
from slimgrad.core.errors import FrameError

# Rows of a product that fit in the cache together with their sum.
_PRODUCT_COMPONENTS = 1 << 16


def places_of(frame: Frame) -> np.ndarray:
    """The places of the components that a sparse frame holds, int64, ascending.

    Raises:
        FrameError: the places are not what an encoder writes.
    """
    header = frame.header
    coded = CodedPlaces(header.code_id, header.bits, frame.payload.numpy())
    try:
        return decode_places(coded, header.n, frame.inner[0].header.n, header.key)
    except FrameError as error:
        raise FrameError(error.reason, HEADER_BYTES + error.position) from error


def scattered(frame: Frame, kept: torch.Tensor) -> torch.Tensor:
    """The vector of a sparse frame, from its ``kept`` values; float32, zero elsewhere."""
    places = places_of(frame)
    values = np.zeros(frame.header.n, dtype=np.float32)
    values[places] = kept.numpy()
    return torch.from_numpy(values)


def scatter_add_(frame: Frame, kept: torch.Tensor, out: torch.Tensor, alpha: float) -> torch.Tensor:
    """Add alpha times the ``kept`` values of a sparse frame to their places in ``out``."""
    places = places_of(frame)
    total = out.numpy()
    term = kept.numpy().astype(total.dtype, copy=False)
    with np.errstate(all="ignore"):
        total[places] += term if alpha == 1.0 else term * total.dtype.type(alpha)
    return out


def product(header: Header, left: torch.Tensor, right: torch.Tensor) -> torch.Tensor:
    """The matrix of a low-rank frame, flat float32: left @ right.T with a fixed order of sums.

    Entry (i, c) is ((l_i0 r_c0 + l_i1 r_c1) + l_i2 r_c2) + ..., every product and sum rounded to
    float32, so that all receivers hold the same bits.
    """
    columns = header.bucket_size
    rows = header.n // columns
    rank = right.numel() // columns
    factors = left.numpy().reshape(rows, rank), right.numpy().reshape(columns, rank).T.copy()
    result = np.zeros((rows, columns), dtype=np.float32)
    step = max(1, _PRODUCT_COMPONENTS // columns)
    with np.errstate(all="ignore"):
        for start in range(0, rows, step):
            block, part = result[start : start + step], factors[0][start : start + step]
            for index in range(rank):
                term = part[:, index, None] * factors[1][index]
                np.add(block, term, out=block) if index else np.copyto(block, term)
    return torch.from_numpy(result.reshape(-1))
