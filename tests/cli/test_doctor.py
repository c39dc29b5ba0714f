from __future__ import annotations

import json
import sys
from collections.abc import Callable
from types import ModuleType
from typing import Any

import pytest
import torch

import slimgrad.experiments
from slimgrad import kernels
from slimgrad.cli import doctor, selfcheck
from slimgrad.cli.selfcheck import Finding
from slimgrad.kernels import backend
from slimgrad.kernels.backend import KernelStatus

Command = Callable[..., Any]


@pytest.fixture(autouse=True)
def _known_machine(monkeypatch: pytest.MonkeyPatch) -> None:
    module = ModuleType("slimgrad.experiments.provenance")
    vars(module).update(
        versions=lambda: {"python": "3.11.7", "torch": "2.13.0", "slimgrad": "0.1.0"},
        hardware=lambda workers=1, threads=1: {
            "processor": "Example CPU",
            "usable_cores": 2,
            "torch_cpu_capability": "AVX2",
        },
    )
    monkeypatch.setitem(sys.modules, module.__name__, module)
    monkeypatch.setattr(slimgrad.experiments, "provenance", module, raising=False)


class Kernels:
    """Kernels that compute the same in both backends, unless told otherwise."""

    def __init__(self) -> None:
        self.native = True
        self.wrong: set[str] = set()

    def status(self) -> KernelStatus:
        return KernelStatus("native" if self.native else "reference", "avx2", True, "")

    def _differs(self, name: str) -> float:
        return float(name in self.wrong and self.native)

    def quantize(self, vector: torch.Tensor, **settings: Any) -> tuple[torch.Tensor, torch.Tensor]:
        assert vector.shape == (10_007,)
        return torch.ones(20) + self._differs("scales"), torch.zeros(7, dtype=torch.uint8)

    def dequantize(self, packed: torch.Tensor, scales: torch.Tensor, **settings: Any) -> Any:
        return torch.ones(settings["n"]) + self._differs("decoded values")

    def topone_weight_grad(self, *arguments: Any) -> torch.Tensor:
        return torch.ones(16, 8, 3, 3) * (1 + 1e-3 * self._differs("topone"))

    def use_backend(self, name: str) -> Any:
        assert name == "reference"
        outer = self

        class Reference:
            def __enter__(self) -> None:
                outer.native = False

            def __exit__(self, *error: object) -> None:
                outer.native = True

        return Reference()


@pytest.fixture
def fake(monkeypatch: pytest.MonkeyPatch) -> Kernels:
    found = Kernels()
    for name in ("quantize", "dequantize", "topone_weight_grad"):
        monkeypatch.setattr(kernels, name, getattr(found, name), raising=False)
    monkeypatch.setattr(backend, "status", found.status)
    monkeypatch.setattr(backend, "use_backend", found.use_backend)
    monkeypatch.setattr(backend, "usable_isas", lambda: ["baseline", "avx2"])
    return found


@pytest.mark.usefixtures("fake")
def test_a_healthy_machine(slimgrad_command: Command) -> None:
    outcome = slimgrad_command("doctor")
    assert (outcome.code, outcome.err) == (0, "")
    for fact in (
        "torch 2.13.0",
        "Example CPU, 2 usable cores",
        "torch uses AVX2",
        "quantize: C++, avx2",
        "topone_weight_grad: C++, avx2",
        "because: the widest instruction set",
        "the C++ kernels share torch's threads",
        "gloo: available",
        "pass  quantize: C++ and reference agree to the last bit on 10,007 components",
        "pass  top-1 weight gradient",
        "pass  gloo all-reduce: the sum over one process is right",
        "all is well",
    ):
        assert fact in outcome.out


@pytest.mark.parametrize(
    ("wrong", "line"),
    [
        ({"scales"}, "FAIL  quantize: C++ and reference differ in scales"),
        ({"decoded values"}, "FAIL  quantize: C++ and reference differ in decoded values"),
        ({"topone"}, "FAIL  top-1 weight gradient: relative difference"),
    ],
)
def test_a_wrong_kernel_is_found(
    slimgrad_command: Command, fake: Kernels, wrong: set[str], line: str
) -> None:
    fake.wrong = wrong
    outcome = slimgrad_command("doctor")
    assert outcome.code == 1
    assert line in outcome.out
    assert "a check failed" in outcome.out


def test_a_kernel_that_raises_fails_its_check_alone(
    slimgrad_command: Command, fake: Kernels, monkeypatch: pytest.MonkeyPatch
) -> None:
    def broken(*arguments: Any, **settings: Any) -> None:
        raise RuntimeError("illegal\ninstruction")

    monkeypatch.setattr(kernels, "quantize", broken, raising=False)
    outcome = slimgrad_command("doctor", "--json")
    assert outcome.code == 1
    tree = json.loads(outcome.out)
    assert tree["healthy"] is False
    states = {check["name"]: (check["status"], check["detail"]) for check in tree["checks"]}
    assert states["quantize"] == ("fail", "RuntimeError: illegal instruction")
    assert states["top-1 weight gradient"][0] == "pass"


@pytest.mark.usefixtures("fake")
def test_json_is_all_there_is_on_stdout(slimgrad_command: Command) -> None:
    outcome = slimgrad_command("doctor", "--json")
    tree = json.loads(outcome.out)
    assert outcome.code == 0
    assert tree["healthy"] is True
    assert tree["kernels"]["operations"]["quantize"] == "native"
    assert tree["kernels"]["usable_instruction_sets"] == ["baseline", "avx2"]
    assert set(tree["distributed"]) == {"gloo", "nccl", "mpi"}
    assert tree["threads"]["torch_intra_op"] >= 1


def test_without_native_kernels_the_reason_is_given_and_nothing_fails(
    slimgrad_command: Command, monkeypatch: pytest.MonkeyPatch
) -> None:
    status = KernelStatus("reference", "", False, "the C++ kernels were not built")
    monkeypatch.setattr(backend, "status", lambda: status)
    outcome = slimgrad_command("doctor")
    assert outcome.code == 0
    assert "quantize: plain torch" in outcome.out
    assert "because: the C++ kernels were not built" in outcome.out
    assert "----  quantize: the C++ kernels are not in use" in outcome.out
    assert "share torch's threads" not in outcome.out


def test_an_exchange_that_sums_wrongly_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(torch.distributed, "all_reduce", lambda tensor: tensor.add_(1))
    check = selfcheck.run_check("gloo", selfcheck.gloo_sums)
    assert (check.status, check.detail) == ("fail", "the sum over one process is wrong")
    assert not torch.distributed.is_initialized()


def test_a_build_without_gloo_is_not_checked(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(torch.distributed, "is_gloo_available", lambda: False)
    check = selfcheck.run_check("gloo", selfcheck.gloo_sums)
    assert (check.status, check.detail) == ("not run", "this build of torch has no gloo")


def test_a_build_without_distributed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(torch.distributed, "is_available", lambda: False)
    assert doctor.distributed_backends() == {"gloo": False, "nccl": False, "mpi": False}


@pytest.mark.usefixtures("fake")
def test_missing_packages_are_named_with_their_purpose(
    slimgrad_command: Command, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(doctor.OPTIONAL_PACKAGES, "no_such_package", "nothing at all")
    outcome = slimgrad_command("doctor")
    assert "no_such_package: needed for nothing at all" in outcome.out
    assert "matplotlib: needed" not in outcome.out


def test_kernels_on_one_thread_are_told() -> None:
    facts = {
        "versions": {},
        "hardware": {"processor": "p", "usable_cores": 1, "torch_cpu_capability": "NONE"},
        "kernels": {
            "operations": {"quantize": "native"},
            "instruction_set": "baseline",
            "reason": "",
            "shares_torch_threads": False,
        },
        "threads": {"torch_intra_op": 1},
        "distributed": {"mpi": False},
        "missing_packages": {},
    }
    text = "\n".join(doctor.fact_lines(facts))
    assert "the C++ kernels run on one thread" in text
    assert "mpi: not in this build of torch" in text


def test_a_finding_decides_the_status() -> None:
    states = [
        selfcheck.run_check("x", lambda holds=holds: Finding(holds, "seen")).status
        for holds in (True, False, None)
    ]
    assert states == ["pass", "fail", "not run"]
