"""Where numbers come from: versions, hardware, kernels in use."""

from __future__ import annotations

import dataclasses
import importlib.metadata
import os
import platform
from pathlib import Path
from typing import Any

import torch

from slimgrad.kernels import backend

_PACKAGES = ("slimgrad", "torch", "numpy", "safetensors", "pillow", "mlxtend")


def usable_cores() -> int:
    """Processor cores this process may run on."""
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


def versions() -> dict[str, str]:
    """Version of Python and of every package that numbers may depend on."""
    found = {"python": platform.python_version()}
    for package in _PACKAGES:
        try:
            found[package] = importlib.metadata.version(package)
        except importlib.metadata.PackageNotFoundError:
            found[package] = "not installed"
    return found


def hardware(workers: int = 1, threads: int = 1) -> dict[str, Any]:
    """Processor, memory, kernels in use, and how the processor is divided."""
    return {
        "processor": _processor_name(),
        "machine": platform.machine(),
        "system": f"{platform.system()} {platform.release()}",
        "usable_cores": usable_cores(),
        "memory_bytes": _memory_bytes(),
        "torch_cpu_capability": torch.backends.cpu.get_cpu_capability(),
        "kernels": dataclasses.asdict(backend.status()),
        "workers": workers,
        "threads_per_worker": threads,
    }


def _processor_name() -> str:
    try:
        for line in Path("/proc/cpuinfo").read_text().splitlines():
            if line.startswith("model name"):
                return line.partition(":")[2].strip()
    except OSError:
        pass  # not Linux
    return platform.processor() or "unknown"


def _memory_bytes() -> int:
    try:
        return os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    except (AttributeError, ValueError, OSError):
        return 0
