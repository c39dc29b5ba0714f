"""The checksum is that of zlib, in one piece or in several, wherever the bytes lie."""

from __future__ import annotations

import zlib

import pytest
import torch

from slimgrad import kernels
from slimgrad.core.errors import ConfigError
from slimgrad.kernels import backend

SIZES = [*range(70), 127, 128, 129, 255, 256, 257, 319, 320, 511, 513, 1000, 4096 + 17, 100_003]
WAYS = [("reference", "auto"), *(("native", isa) for isa in backend.usable_isas())]


@pytest.mark.parametrize(("name", "isa"), WAYS)
def test_every_length_and_start_is_as_zlib_says(name, isa):
    generator = torch.Generator().manual_seed(1)
    octets = torch.randint(0, 256, (SIZES[-1] + 3,), generator=generator, dtype=torch.uint8)
    with backend.use_backend(name, isa):
        for size in SIZES:
            for begin, start in ((0, 0), (1, 0xDEADBEEF), (3, 0xFFFFFFFF)):
                data = octets[begin : begin + size]
                assert kernels.crc32(data, start) == zlib.crc32(bytes(data.numpy()), start)


@pytest.mark.parametrize(("name", "isa"), WAYS)
def test_pieces_add_up(name, isa):
    data = torch.arange(3000, dtype=torch.int32).to(torch.uint8)
    with backend.use_backend(name, isa):
        whole = kernels.crc32(data)
        for cut in (0, 1, 63, 64, 700, 2999, 3000):
            assert kernels.crc32(data[cut:], kernels.crc32(data[:cut])) == whole


@pytest.mark.skipif(not backend.usable_isas(), reason="the C++ kernels were not built here")
def test_the_compiled_way_without_wide_instructions():
    module = backend.native_module()
    assert module is not None
    data = torch.arange(1000, dtype=torch.int32).to(torch.uint8)
    with backend.use_backend("native", "baseline"):
        assert module.crc32(data, 5) == zlib.crc32(bytes(data.numpy()), 5)


def test_what_has_no_checksum_is_refused():
    with pytest.raises(ConfigError, match="data must be flat"):
        kernels.crc32(torch.zeros(3))
    with pytest.raises(ConfigError, match="data must be contiguous"):
        kernels.crc32(torch.zeros(8, dtype=torch.uint8)[::2])
    with pytest.raises(ConfigError, match=r"start must be an integer in \[0, 2\*\*32\), got -1"):
        kernels.crc32(torch.zeros(3, dtype=torch.uint8), -1)
