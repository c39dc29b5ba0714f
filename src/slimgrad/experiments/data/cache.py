"""Decoded images, kept in one safetensors file so that they are decoded once."""

from __future__ import annotations

import hashlib
import json
import os
import warnings
from pathlib import Path

import torch
from safetensors import SafetensorError

from slimgrad.core.errors import DataError, SlimgradWarning
from slimgrad.experiments.data.base import DatasetReader, ImageDataset, Split
from slimgrad.experiments.files import read_tensors, slug, tensor_bytes, write_tensors

# Part of every fingerprint: a cache written by another layout is not read.
_LAYOUT = 1
_TENSORS = ("train_images", "train_labels", "test_images", "test_labels")


def default_cache_dir() -> Path:
    """``$XDG_CACHE_HOME/slimgrad``, or ``~/.cache/slimgrad``."""
    base = os.environ.get("XDG_CACHE_HOME", "")
    return (Path(base) if base else Path.home() / ".cache") / "slimgrad"


def cached(
    reader: DatasetReader, path: Path | None, cache_dir: Path | None
) -> tuple[ImageDataset, Path]:
    """The data set of ``reader``, from the cache where the original files have not changed.

    A damaged cache file is said and replaced.
    """
    files = reader.files(path)
    name = f"{slug(reader.name)}-{_fingerprint(reader.name, files)}.safetensors"
    target = (cache_dir or default_cache_dir()) / name
    if target.exists():
        try:
            return read_cache(target), target
        except DataError as error:
            warnings.warn(f"{error}; decoding the images again", SlimgradWarning, stacklevel=3)
    _write(target, reader.read(path))
    return read_cache(target), target


def _fingerprint(name: str, files: list[Path]) -> str:
    digest = hashlib.sha256(f"{_LAYOUT}:{name}".encode())
    for file in files:
        try:
            facts = os.stat(file)
        except OSError as error:
            raise DataError(
                f"the data file {file} cannot be read ({error.strerror}): replace it or delete it"
            ) from None
        digest.update(f"\n{os.path.abspath(file)}\t{facts.st_size}\t{facts.st_mtime_ns}".encode())
    return digest.hexdigest()[:20]


def _checksum(tensors: dict[str, torch.Tensor]) -> str:
    digest = hashlib.sha256()
    for name in _TENSORS:
        digest.update(f"{name}{tuple(tensors[name].shape)}".encode())
        digest.update(tensor_bytes(tensors[name]))
    return digest.hexdigest()


def _write(target: Path, dataset: ImageDataset) -> None:
    tensors = {
        "train_images": dataset.train.images.contiguous(),
        "train_labels": dataset.train.labels,
        "test_images": dataset.test.images.contiguous(),
        "test_labels": dataset.test.labels,
    }
    facts = {
        "name": dataset.name,
        "class_names": dataset.class_names,
        "mean": dataset.mean,
        "std": dataset.std,
        "augment": dataset.augment,
        "provenance": dataset.provenance,
        "checksum": _checksum(tensors),
    }
    metadata = {"slimgrad": json.dumps(facts)}
    try:
        write_tensors(target, tensors, metadata)
    except OSError as error:
        raise DataError(
            f"cannot keep decoded images in {target.parent}: {error.strerror}; "
            "choose another folder with the variable XDG_CACHE_HOME or the setting data.cache_dir"
        ) from None


def read_cache(file: Path) -> ImageDataset:
    """The data set of one cache file.

    Raises:
        DataError: the file was damaged.
    """
    try:
        tensors, metadata = read_tensors(file)
        facts = json.loads(metadata["slimgrad"])
        found = _checksum(tensors)
        if found != facts["checksum"]:
            raise DataError(
                f"the cached images {file} are damaged: sha256 {found}, "
                f"expected {facts['checksum']}"
            )
    except (SafetensorError, KeyError, TypeError, ValueError, OSError) as error:
        raise DataError(f"the cached images {file} are damaged: {error}") from None
    return ImageDataset(
        name=facts["name"],
        train=Split(tensors["train_images"], tensors["train_labels"]),
        test=Split(tensors["test_images"], tensors["test_labels"]),
        class_names=tuple(facts["class_names"]),
        mean=tuple(facts["mean"]),
        std=tuple(facts["std"]),
        augment=facts["augment"],
        provenance=facts["provenance"],
        checksum=facts["checksum"],
    )
