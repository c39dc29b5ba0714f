"""Which implementation of each operation is in use, and why."""

from __future__ import annotations

import ctypes
import functools
import importlib
import warnings
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from types import ModuleType
from typing import TYPE_CHECKING

import torch

from slimgrad.core.errors import BackendError, ConfigError, FallbackWarning
from slimgrad.core.registry import unknown_name_message

if TYPE_CHECKING:
    from collections.abc import Iterator

BACKENDS = ("auto", "native", "reference")
ISAS = ("auto", "avx512", "avx2", "baseline")
_choice = "auto"


@dataclass(frozen=True)
class KernelStatus:
    """What runs the operations.

    Attributes:
        backend: "native" or "reference".
        isa: instruction set of the native kernels, "" for the reference.
        shares_torch_threads: whether native kernels run on torch's own thread pool.
        reason: why the native kernels are not in use; "" when they are.
    """

    backend: str
    isa: str
    shares_torch_threads: bool
    reason: str


def _torch_parallel_for_address() -> int:
    """Address of torch's stable parallel-for entry point, 0 where torch does not export it."""
    folder = Path(torch.__file__).parent / "lib"
    for name in ("libtorch_cpu.so", "libtorch_cpu.dylib", "torch_cpu.dll"):
        if (folder / name).exists():
            try:
                entry = ctypes.CDLL(str(folder / name)).torch_parallel_for
            except (OSError, AttributeError):
                return 0
            return ctypes.cast(entry, ctypes.c_void_p).value or 0
    return 0


@functools.cache
def _load() -> tuple[ModuleType | None, bool, str]:
    """The compiled module (or None), whether it shares torch's threads, and why it is missing."""
    try:
        module = importlib.import_module("slimgrad.kernels._native")
    except ImportError as error:
        return None, False, f"the C++ kernels were not built or do not load ({error})"
    address = _torch_parallel_for_address()
    if address:
        module.set_torch_parallel_for(address)
    return module, bool(address), ""


def native_module() -> ModuleType | None:
    """The compiled module when the native backend is in use, else None (said once)."""
    if _choice == "reference":
        return None
    module, _, reason = _load()
    if module is None:
        _warn_once(reason)
    return module


@functools.cache
def _warn_once(reason: str) -> None:
    warnings.warn(
        f"{reason}; plain torch is used instead, which is much slower",
        FallbackWarning,
        stacklevel=3,
    )


def set_backend(name: str) -> None:
    """Choose "native", "reference" or "auto" (native where it was built).

    Raises:
        ConfigError: unknown name.
        BackendError: native asked for and not available.
    """
    global _choice
    if name not in BACKENDS:
        raise ConfigError(unknown_name_message("kernel backend", name, BACKENDS))
    if name == "native" and _load()[0] is None:
        raise BackendError(f"kernel backend 'native' cannot be used: {_load()[2]}")
    _choice = name


@contextmanager
def use_backend(name: str, isa: str = "auto") -> Iterator[None]:
    """Use a backend, and for the native one an instruction set, inside a ``with`` block.

    >>> with use_backend("reference"):
    ...     status().backend
    'reference'
    """
    global _choice
    before = _choice
    set_backend(name)
    module = _load()[0]
    isa_before = module.isa() if module is not None else "auto"
    try:
        if isa != "auto":
            set_isa(isa)
        yield
    finally:
        _choice = before
        if module is not None:
            module.set_isa(isa_before)


def set_isa(isa: str) -> None:
    """Restrict the native kernels to one instruction set ("auto" for the widest)."""
    if isa not in ISAS:
        raise ConfigError(unknown_name_message("instruction set", isa, ISAS))
    module = _load()[0]
    if module is None or not module.set_isa(isa):
        raise BackendError(f"instruction set {isa!r} cannot be used on this processor or build")


def usable_isas() -> list[str]:
    """Instruction sets of the native kernels that run here, narrowest first; [] without them."""
    module = _load()[0]
    if module is None:
        return []
    order = ["baseline", "avx2", "avx512"]
    return order[: order.index(module.best_isa()) + 1]


def status() -> KernelStatus:
    """What runs the operations now."""
    module, shares, reason = _load()
    if _choice == "reference":
        return KernelStatus("reference", "", False, "the reference was chosen")
    if module is None:
        return KernelStatus("reference", "", False, reason)
    return KernelStatus("native", module.isa(), shares, "")
