"""Any set of images sorted into class folders."""

from __future__ import annotations

import os
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np
import torch

from slimgrad.core.errors import DataError
from slimgrad.experiments.data.base import (
    DatasetReader,
    ImageDataset,
    Split,
    altered,
    channel_statistics,
)

_SUFFIXES = frozenset(
    (".jpg", ".jpeg", ".png", ".bmp", ".gif", ".tif", ".tiff", ".webp", ".ppm", ".pgm", ".pbm")
)
_LAYOUT = "expected train/CLASS/IMAGE and test/CLASS/IMAGE"
_ADVICE = "replace the file or delete it"


class Folders(DatasetReader):
    """A tree ``train/CLASS/IMAGE`` and ``test/CLASS/IMAGE`` of the usual image files.

    All images have one size and 8 bits a channel; they are grey when the first one is, else red,
    green and blue. Both splits have the same classes, each with at least one image. Files with
    another ending are left out.
    """

    name = "folders"
    path_means = "a folder that holds train/CLASS/IMAGE and test/CLASS/IMAGE"

    def files(self, path: Path | None) -> list[Path]:
        """All images, in the order of their names."""
        assert path is not None
        found: list[str] = []
        for split in ("train", "test"):
            if not (path / split).is_dir():
                raise DataError(f"the folder {path / split} is missing: {_LAYOUT}")
            # Texts, not paths, while there may be a hundred thousand of them.
            images = [
                os.path.join(folder, name)
                for folder, _, names in os.walk(path / split)
                for name in names
                if os.path.splitext(name)[1].lower() in _SUFFIXES
            ]
            if not images:
                raise DataError(f"the folder {path / split} holds no images: {_LAYOUT}")
            found += sorted(images)
        _check_classes(path, found)
        return [Path(image) for image in found]

    def read(self, path: Path | None) -> ImageDataset:
        """All images decoded; DataError naming the first that cannot be used."""
        assert path is not None
        files = self.files(path)
        by_split: dict[str, list[Path]] = {"train": [], "test": []}
        for file in files:
            by_split[file.relative_to(path).parts[0]].append(file)
        classes = sorted({file.parent.name for file in by_split["train"]})
        mode, size = _first_form(files[0])
        number = {name: index for index, name in enumerate(classes)}
        splits = {}
        for split, members in by_split.items():
            labels = torch.tensor([number[file.parent.name] for file in members])
            splits[split] = Split(_decode_all(members, mode, size), labels)
        mean, std = channel_statistics(splits["train"].images)
        lossy = any(file.suffix.lower() in (".jpg", ".jpeg") for file in files)
        return ImageDataset(
            name=self.name,
            train=splits["train"],
            test=splits["test"],
            class_names=tuple(classes),
            mean=mean,
            std=std,
            augment="crop_flip",
            provenance=f"class folders {path.name}, {len(files):,} images"
            + (", JPEG (lossy)" if lossy else ""),
        )


def _check_classes(path: Path, images: list[str]) -> None:
    """DataError unless both splits have images of the same two or more classes.

    A class that is missing somewhere, or empty, would change what the accuracy means.
    """
    filled: dict[str, set[str]] = {"train": set(), "test": set()}
    for folder in sorted({os.path.dirname(image) for image in images}):
        parts = Path(folder).relative_to(path).parts
        if len(parts) != 2:
            stray = next(image for image in images if os.path.dirname(image) == folder)
            raise DataError(f"the image {stray} is in the wrong place: {_LAYOUT}")
        filled[parts[0]].add(parts[1])
    for split, names in filled.items():
        for folder in sorted(path.joinpath(split).iterdir()):
            if folder.is_dir() and folder.name not in names:
                raise DataError(
                    f"the class folder {folder} holds no images: "
                    "fill it, or delete the class from train and test"
                )
    for split, other in (("test", "train"), ("train", "test")):
        for name in sorted(filled[split] - filled[other]):
            raise DataError(
                f"the folder {path / split / name} has no counterpart in {path / other}: {_LAYOUT}"
            )
    if len(filled["train"]) < 2:
        only = path / "train" / filled["train"].pop()
        raise DataError(f"{only} is the only class: classification needs two or more")


def _first_form(file: Path) -> tuple[str, tuple[int, int]]:
    """Colour mode to convert all images to, and their (columns, rows)."""
    from PIL import Image

    try:
        with Image.open(file) as image:
            form = "L" if image.mode in ("1", "L", "LA") else "RGB"
            size = image.size
    except (OSError, SyntaxError, ValueError, EOFError) as error:
        raise altered(file, f"it cannot be decoded ({error})", _ADVICE) from None
    if size[0] != size[1]:
        raise DataError(f"the image {file} is {size[0]}x{size[1]}: images must be square")
    return form, size


def _decode(file: Path, mode: str, size: tuple[int, int]) -> np.ndarray:
    from PIL import Image

    try:
        with Image.open(file) as image:
            if image.size != size:
                raise DataError(
                    f"the image {file} is {image.size[0]}x{image.size[1]}, "
                    f"the first is {size[0]}x{size[1]}: all must have one size"
                )
            if image.mode.startswith(("I", "F")):
                # Pillow would cut every value above 255 down to 255.
                raise DataError(
                    f"the image {file} has more than 8 bits a channel (mode {image.mode}): "
                    "convert it to 8 bits"
                )
            return np.asarray(image.convert(mode))
    except (OSError, SyntaxError, ValueError, EOFError) as error:
        raise altered(file, f"it cannot be decoded ({error})", _ADVICE) from None


def _decode_all(files: list[Path], mode: str, size: tuple[int, int]) -> torch.Tensor:
    channels = 1 if mode == "L" else 3
    images = np.empty((len(files), size[1], size[0], channels), np.uint8)

    def put(indices: range) -> None:
        for index in indices:
            images[index] = _decode(files[index], mode, size).reshape(images.shape[1:])

    threads = min(4, os.cpu_count() or 1)
    pieces = [range(start, len(files), 4 * threads) for start in range(4 * threads)]
    with ThreadPoolExecutor(threads) as pool:
        # Read to the end, so that the first failure is raised here.
        list(pool.map(put, pieces))
    return torch.from_numpy(images).permute(0, 3, 1, 2).contiguous()
