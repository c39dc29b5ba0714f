"""A data set so small that a whole training run takes a fraction of a second."""

from __future__ import annotations

import socket
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from PIL import Image

from slimgrad.experiments.config import TrainConfig
from slimgrad.experiments.training import Training


def write_class_folders(
    root: Path, *, train: int = 32, test: int = 8, size: int = 8, suffix: str = "png"
) -> Path:
    """Two classes of coloured noise, ``train`` and ``test`` images of each."""
    draws = np.random.default_rng(0)
    for split, count in (("train", train), ("test", test)):
        for label, name in enumerate(("dark", "light")):
            folder = root / split / name
            folder.mkdir(parents=True)
            for index in range(count):
                pixels = draws.integers(120 * label, 136 + 120 * label, (size, size, 3))
                image = Image.fromarray(pixels.astype(np.uint8))
                image.save(folder / f"{index:03d}.{suffix}")
    return root


@pytest.fixture
def class_folders(tmp_path: Path) -> Path:
    return write_class_folders(tmp_path / "images")


@pytest.fixture
def tiny_config(class_folders: Path, tmp_path: Path) -> Callable[..., TrainConfig]:
    """Makes configurations of runs over the tiny images: 8 steps an epoch."""

    def make(**changes: Any) -> TrainConfig:
        settings: dict[str, Any] = {
            "data": {
                "name": "folders",
                "path": class_folders,
                "cache_dir": tmp_path / "cache",
            },
            "model": "cnn2:width=4",
            "epochs": 2,
            "batch_size": 8,
            "optimizer": {"name": "sgd", "lr": 0.05},
            "threads": 1,
            "out": tmp_path / "out",
        }
        return TrainConfig(**(settings | changes))

    return make


class InterruptionError(Exception):
    """Stands for whatever ends a run before its end."""


@pytest.fixture
def interrupt_at(monkeypatch: pytest.MonkeyPatch) -> Callable[[int], Any]:
    """Makes the ``with`` block's run fail when it begins the step of that number (from 0)."""

    @contextmanager
    def block(number: int) -> Iterator[None]:
        original = Training.step

        def step(self: Training, step: int) -> float:
            if step == number:
                raise InterruptionError
            return original(self, step)

        with monkeypatch.context() as patch:
            patch.setattr(Training, "step", step)
            with pytest.raises(InterruptionError):
                yield

    return block


@pytest.fixture
def launch_of_one(monkeypatch: pytest.MonkeyPatch) -> None:
    """The environment of a launch of torchrun with one process."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    variables = {"RANK": 0, "WORLD_SIZE": 1, "MASTER_ADDR": "127.0.0.1", "MASTER_PORT": port}
    for name, value in (variables | {"GLOO_SOCKET_IFNAME": "lo"}).items():
        monkeypatch.setenv(name, str(value))
