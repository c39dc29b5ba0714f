"""Choosing a backend: wrong names, missing ones, and what is in use inside and after a block."""

from __future__ import annotations

import ctypes

import pytest
import torch

from slimgrad import kernels
from slimgrad.core.errors import BackendError, ConfigError, FallbackWarning
from slimgrad.kernels import backend

MISSING = "the C++ kernels were not built or do not load (no such file)"
needs_native = pytest.mark.skipif(
    not backend.usable_isas(), reason="the C++ kernels were not built here"
)


@pytest.fixture
def without_native(monkeypatch):
    monkeypatch.setattr(backend, "_load", lambda: (None, False, MISSING))
    backend._warn_once.cache_clear()
    yield
    backend._warn_once.cache_clear()


def test_unknown_names_give_the_nearest():
    with pytest.raises(ConfigError, match="unknown kernel backend 'nativ': did you mean 'native'"):
        backend.set_backend("nativ")
    with pytest.raises(ConfigError, match="unknown instruction set 'avx3': did you mean 'avx2'"):
        backend.set_isa("avx3")


def test_a_missing_backend_that_is_asked_for_is_an_error(without_native):
    with pytest.raises(BackendError, match="kernel backend 'native' cannot be used: the C"):
        backend.set_backend("native")
    with pytest.raises(BackendError, match="instruction set 'avx2' cannot be used"):
        backend.set_isa("avx2")
    assert backend.usable_isas() == []


def test_falling_back_is_said_once(without_native, recwarn):
    settings = {"levels": (0.0, 1.0), "grid": "uniform", "norm": "l2", "bucket_size": 4, "bits": 2}
    for _ in range(2):
        kernels.quantize(torch.ones(8), **settings, key=0)
    said = [str(w.message) for w in recwarn if w.category is FallbackWarning]
    assert said == [f"{MISSING}; plain torch is used instead, which is much slower"]
    assert backend.status() == backend.KernelStatus("reference", "", False, MISSING)


def test_the_choice_ends_with_its_block():
    before = backend.status()
    with backend.use_backend("reference"):
        assert backend.status().reason == "the reference was chosen"
        assert backend.native_module() is None
    with pytest.raises(ZeroDivisionError), backend.use_backend("reference"):
        _ = 1 / 0
    assert backend.status() == before


@needs_native
def test_an_instruction_set_ends_with_its_block():
    before = backend.status().isa
    for isa in backend.usable_isas():
        with backend.use_backend("native", isa):
            assert backend.status().isa == isa
    with pytest.raises(ConfigError), backend.use_backend("native", "none"):
        pass
    assert backend.status().isa == before


@needs_native
def test_a_thread_pool_that_fails_is_an_error():
    module = backend.native_module()
    assert module is not None
    address = backend._torch_parallel_for_address()
    if not address:
        pytest.skip("this torch does not share its thread pool")
    kind = ctypes.CFUNCTYPE(ctypes.c_int32, *[ctypes.c_int64] * 3, ctypes.c_void_p, ctypes.c_void_p)
    failing = kind(lambda *_: 1)
    settings = {"levels": (0.0, 1.0), "grid": "uniform", "norm": "l2", "bucket_size": 4, "bits": 2}
    module.set_torch_parallel_for(ctypes.cast(failing, ctypes.c_void_p).value)
    try:
        with pytest.raises(RuntimeError, match="thread pool failed"):
            kernels.quantize(torch.ones(200_000), **settings, key=0)
    finally:
        module.set_torch_parallel_for(address)
