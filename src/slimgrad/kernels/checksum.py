"""The checksum of a frame."""

from __future__ import annotations

import zlib

import torch

from slimgrad.core.errors import ConfigError
from slimgrad.kernels.backend import native_module
from slimgrad.kernels.checks import check_vector, is_integer


def crc32(data: torch.Tensor, start: int = 0) -> int:
    """The CRC-32 of gzip and PNG of ``data``, behind bytes whose checksum is ``start``.

    The remainder of the bytes as a polynomial over bits, divided by that of the CRC; the same as
    ``zlib.crc32``, which is the reference.

    Args:
        data: flat, contiguous uint8 on the CPU.
        start: in [0, 2**32); 0 when nothing comes before.

    Returns:
        An integer in [0, 2**32).

    Raises:
        ConfigError: an argument of another kind.

    >>> hex(crc32(torch.tensor(list(b"123456789"), dtype=torch.uint8)))
    '0xcbf43926'

    References:
        Gopal et al., 2009, "Fast CRC computation for generic polynomials using PCLMULQDQ".
    """
    check_vector("data", data, torch.uint8)
    if not data.is_contiguous():
        raise ConfigError("data must be contiguous, the checksum is of bytes in memory; copy it")
    if not is_integer(start) or not 0 <= start < 1 << 32:
        raise ConfigError(f"start must be an integer in [0, 2**32), got {start!r}")
    module = native_module()
    # Without wide instructions zlib is faster than byte by byte.
    if module is None or module.isa() == "baseline":
        return zlib.crc32(data.numpy().data, start)
    return module.crc32(data, start)
