from __future__ import annotations

from pathlib import Path

import pytest
import torch

from slimgrad.core.errors import DataError
from slimgrad.core.rng import numpy_generator
from slimgrad.experiments.data.base import altered, channel_statistics, require_file


def test_statistics_equal_those_of_floats():
    draws = numpy_generator(1).integers(0, 256, (20, 3, 5, 5), dtype="uint8")
    images = torch.from_numpy(draws)
    mean, std = channel_statistics(images)
    floats = images.double().div(255).transpose(0, 1).reshape(3, -1)
    assert mean == pytest.approx(floats.mean(1).tolist(), abs=1e-12)
    assert std == pytest.approx(floats.std(1, correction=0).tolist(), abs=1e-12)


def test_a_constant_channel_does_not_divide_by_zero():
    assert channel_statistics(torch.zeros(2, 1, 2, 2, dtype=torch.uint8))[1] == (1e-6,)


def test_a_missing_file_is_named(tmp_path: Path):
    with pytest.raises(DataError, match=r"images\.gz is missing: get it"):
        require_file(tmp_path / "images.gz", "get it")


def test_an_altered_file_is_named_with_its_checksum(tmp_path: Path):
    file = tmp_path / "images.gz"
    file.write_bytes(b"abc")
    message = str(altered(file, "it is short", "get it again", "md5"))
    assert message == (
        f"the data file {file} is corrupt: it is short "
        "(md5 900150983cd24fb0d6963f7d28e17f72, 3 bytes): get it again"
    )
