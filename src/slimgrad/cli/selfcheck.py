"""Two seconds of checks that the kernels and the exchange compute what they should, here."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal

import torch

from slimgrad.core import rng
from slimgrad.kernels import backend

Status = Literal["pass", "fail", "not run"]


@dataclass(frozen=True)
class Check:
    """What one check found.

    Attributes:
        name: what was checked.
        status: "not run" when there is nothing to compare with.
        detail: what was found, in a few words.
        seconds: how long it took.
    """

    name: str
    status: Status
    detail: str
    seconds: float


@dataclass(frozen=True)
class Finding:
    """Whether a check holds, and what it saw; ``holds`` is None when it could not be made."""

    holds: bool | None
    detail: str


def run_checks() -> list[Check]:
    """Make every check; one that raises has failed."""
    return [
        run_check(name, check)
        for name, check in (
            ("quantize", quantize_agrees),
            ("top-1 weight gradient", topone_agrees),
            ("gloo all-reduce", gloo_sums),
        )
    ]


def run_check(name: str, check: Callable[[], Finding]) -> Check:
    """Make one check.

    >>> run_check("sums", lambda: Finding(1 + 1 == 3, "1 + 1 is not 3")).status
    'fail'
    """
    start = time.perf_counter()
    try:
        finding = check()
    except Exception as error:  # a broken kernel may raise anything; the others still run
        finding = Finding(False, f"{type(error).__name__}: {' '.join(str(error).split())}")
    status: Status = "not run" if finding.holds is None else "pass" if finding.holds else "fail"
    return Check(name, status, finding.detail, round(time.perf_counter() - start, 3))


def quantize_agrees() -> Finding:
    """Native quantize and dequantize give the same bytes as the reference.

    The vector has 10,007 components, so the last bucket and the last block are cut short.
    """
    if backend.status().backend != "native":
        return _nothing_to_compare()
    from slimgrad import kernels

    n, bits, bucket_size = 10_007, 4, 512
    levels = (0.0, *(2.0**-k for k in range(6, -1, -1)))
    vector = rng.normal(key=1, shape=(n,))

    def both_ways() -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
        scales, packed = kernels.quantize(
            vector,
            levels=levels,
            grid="exponential",
            norm="l2",
            bucket_size=bucket_size,
            bits=bits,
            key=2,
        )
        decoded = kernels.dequantize(
            packed, scales, n=n, levels=levels, bits=bits, bucket_size=bucket_size
        )
        return scales, packed, decoded

    native = both_ways()
    with backend.use_backend("reference"):
        reference = both_ways()
    pairs = zip(("scales", "symbols", "decoded values"), native, reference, strict=True)
    wrong = [name for name, ours, theirs in pairs if not torch.equal(ours, theirs)]
    if wrong:
        return Finding(False, f"C++ and reference differ in {', '.join(wrong)}")
    return Finding(True, f"C++ and reference agree to the last bit on {n:,} components")


def topone_agrees() -> Finding:
    """The native top-1 weight gradient equals the reference up to the order of additions."""
    if backend.status().backend != "native":
        return _nothing_to_compare()
    from slimgrad import kernels

    x, grad_out = rng.normal(3, (4, 8, 14, 14)), rng.normal(4, (4, 16, 7, 7))

    def gradient() -> torch.Tensor:
        return kernels.topone_weight_grad(x, grad_out, (3, 3), (2, 2), (1, 1), (1, 1), 1)

    native = gradient()
    with backend.use_backend("reference"):
        reference = gradient()
    error = float((native - reference).norm() / reference.norm())
    # 4 images add at most 4 products an entry, each rounded to 6e-8.
    return Finding(error <= 1e-5, f"relative difference of C++ and reference: {error:.1e}")


def gloo_sums() -> Finding:
    """A process group of this process alone returns what it was given."""
    import torch.distributed as dist
    from torch._C._distributed_c10d import HashStore

    if not (dist.is_available() and dist.is_gloo_available()):
        return Finding(None, "this build of torch has no gloo")
    dist.init_process_group("gloo", store=HashStore(), rank=0, world_size=1)
    try:
        sent = torch.arange(1000.0)
        received = sent.clone()
        dist.all_reduce(received)
    finally:
        dist.destroy_process_group()
    holds = torch.equal(sent, received)
    return Finding(holds, "the sum over one process is " + ("right" if holds else "wrong"))


def _nothing_to_compare() -> Finding:
    return Finding(None, "the C++ kernels are not in use, so there is nothing to compare")
