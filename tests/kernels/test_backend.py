"""The choice between the compiled kernels and plain torch."""

from __future__ import annotations

import ctypes
import sys
import warnings

import pytest
import torch

from slimgrad import kernels
from slimgrad.core.errors import BackendError, ConfigError, FallbackWarning
from slimgrad.kernels import backend, topone_weight_grad

needs_native = pytest.mark.skipif(
    not backend.usable_isas(), reason="the C++ kernels are not built here"
)
MISSING = "the C++ kernels were not built or do not load (for a test)"


@pytest.fixture(autouse=True)
def _same_choice_afterwards():
    with backend.use_backend("auto"):
        yield


@pytest.fixture
def no_native(monkeypatch):
    monkeypatch.setattr(backend, "_load", lambda: (None, False, MISSING))
    backend._warn_once.cache_clear()
    yield
    backend._warn_once.cache_clear()


def test_unknown_names_are_refused():
    with pytest.raises(ConfigError, match="unknown kernel backend 'nativ': did you mean 'native'"):
        backend.set_backend("nativ")
    with pytest.raises(ConfigError, match="unknown instruction set 'avx': did you mean 'avx2'"):
        backend.set_isa("avx")


def test_the_reference_can_be_chosen():
    backend.set_backend("reference")
    assert backend.native_module() is None
    assert backend.status() == backend.KernelStatus(
        "reference", "", False, "the reference was chosen"
    )


def test_a_missing_module_is_said_once_and_replaced(no_native):
    x, grad_out = torch.ones(1, 1, 3, 3), torch.ones(1, 2, 3, 3)
    with pytest.warns(FallbackWarning, match=r"do not load \(for a test\); plain torch is used"):
        got = topone_weight_grad(x, grad_out, 1)
    assert torch.equal(got, torch.full((2, 1, 1, 1), 9.0))
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        topone_weight_grad(x, grad_out, 1)
    assert backend.status() == backend.KernelStatus("reference", "", False, MISSING)
    assert backend.usable_isas() == []


def test_a_missing_module_asked_for_by_name_is_an_error(no_native):
    with pytest.raises(BackendError, match="kernel backend 'native' cannot be used: the C"):
        backend.set_backend("native")
    with pytest.raises(BackendError, match="instruction set 'avx2' cannot be used"):
        backend.set_isa("avx2")
    assert backend.status().backend == "reference"


def test_why_the_module_does_not_load(monkeypatch):
    monkeypatch.setitem(sys.modules, "slimgrad.kernels._native", None)
    module, shares_threads, reason = backend._load.__wrapped__()
    assert (module, shares_threads) == (None, False)
    assert reason.startswith("the C++ kernels were not built or do not load (")


@needs_native
def test_native_kernels_run_on_the_threads_of_torch():
    status = backend.status()
    assert status == backend.KernelStatus("native", backend.usable_isas()[-1], True, "")


@pytest.mark.parametrize("entry", [OSError, AttributeError])
def test_without_torch_s_entry_point_kernels_run_serially(monkeypatch, entry):
    class Library:
        def __init__(self, path):
            if entry is OSError:
                raise OSError(path)

    monkeypatch.setattr(ctypes, "CDLL", Library)
    assert backend._torch_parallel_for_address() == 0


def test_a_torch_laid_out_in_another_way_has_no_entry_point(monkeypatch, tmp_path):
    monkeypatch.setattr(torch, "__file__", str(tmp_path / "__init__.py"))
    assert backend._torch_parallel_for_address() == 0


@needs_native
def test_a_block_restores_backend_and_instruction_set_after_an_error():
    def fail_inside():
        with backend.use_backend("native", "baseline"):
            assert backend.status().isa == "baseline"
            raise ZeroDivisionError

    before = backend.status()
    with pytest.raises(ZeroDivisionError):
        fail_inside()
    with pytest.raises(ConfigError), backend.use_backend("reference", "sse"):
        pass
    assert backend.status() == before


@needs_native
def test_an_instruction_set_this_processor_lacks_is_refused(monkeypatch):
    class Old:
        def set_isa(self, name):
            return name == "baseline"

    monkeypatch.setattr(backend, "_load", lambda: (Old(), True, ""))
    with pytest.raises(BackendError, match="'avx512' cannot be used on this processor or build"):
        backend.set_isa("avx512")


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
