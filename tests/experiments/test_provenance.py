from __future__ import annotations

import importlib.metadata
import json
import os
from pathlib import Path

import pytest
import torch

from slimgrad.experiments import provenance


def test_versions_are_those_in_use():
    found = provenance.versions()
    assert found["torch"] == torch.__version__
    assert set(found) >= {"python", "slimgrad", "numpy"}


def test_a_package_that_is_not_there_is_said(monkeypatch: pytest.MonkeyPatch):
    def missing(name: str) -> str:
        raise importlib.metadata.PackageNotFoundError(name)

    monkeypatch.setattr(importlib.metadata, "version", missing)
    assert provenance.versions()["numpy"] == "not installed"


def test_hardware_is_plain_data_with_the_kernels_in_use():
    found = json.loads(json.dumps(provenance.hardware(2, 1)))
    assert found["usable_cores"] >= 1
    assert found["memory_bytes"] > 0
    assert found["kernels"]["backend"] in ("native", "reference")
    assert (found["workers"], found["threads_per_worker"]) == (2, 1)


def test_hardware_is_told_where_linux_files_are_missing(monkeypatch: pytest.MonkeyPatch):
    def missing(*arguments, **keywords):
        raise OSError("not here")

    monkeypatch.setattr(Path, "read_text", missing)
    monkeypatch.setattr(os, "sysconf", missing)
    monkeypatch.delattr(os, "sched_getaffinity", raising=False)
    found = provenance.hardware()
    assert found["processor"]
    assert found["memory_bytes"] == 0
    assert found["usable_cores"] == os.cpu_count()
