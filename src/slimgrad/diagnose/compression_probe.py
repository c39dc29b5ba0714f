"""What compression does to given gradients, beside what it promises."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass

import torch
from torch import nn

from slimgrad import kernels
from slimgrad.comm import frame as wire
from slimgrad.comm.compressor import Compressor
from slimgrad.comm.decoding import packed_symbols
from slimgrad.comm.header import METHOD_QUANTIZED
from slimgrad.comm.policy import Policy
from slimgrad.core.errors import ConfigError

# A mean over independent roundings is all but normal; six standard errors are passed by chance
# less than once in 1e8.
_STANDARD_ERRORS = 6.0


@dataclass(frozen=True)
class TensorProbe:
    """What compression did to one tensor.

    Attributes:
        name: of the parameter.
        n: components.
        exact: whether the policy sends it exactly.
        measured_variance: mean of ||Q(v) - v||^2 / ||v||^2 over the repeats; 0 for a zero tensor.
        standard_error: of that mean.
        variance_bound: what the method promises for n components; NaN where it promises nothing.
        measured_bits: bits a component, mean over the repeats, scales, tables and header included.
        entropy_bits: entropy of the symbols plus the bits of everything beside them: what the best
            order-0 coder would send; NaN where there are no symbols.
        is_defect: whether the measured variance exceeds the bound by more than chance allows.
    """

    name: str
    n: int
    exact: bool
    measured_variance: float
    standard_error: float
    variance_bound: float
    measured_bits: float
    entropy_bits: float
    is_defect: bool


@dataclass(frozen=True)
class CompressionProbeReport:
    """All tensors of one probe.

    Attributes:
        method: text of the compressor.
        repeats: independent roundings of every tensor.
        rows: tensor by tensor.
    """

    method: str
    repeats: int
    rows: tuple[TensorProbe, ...]

    @property
    def defects(self) -> tuple[TensorProbe, ...]:
        """Tensors whose measured variance is above the bound, which only a mistake explains."""
        return tuple(row for row in self.rows if row.is_defect)

    @property
    def measured_bits(self) -> float:
        """Bits a component over all tensors."""
        components = sum(row.n for row in self.rows)
        sent = sum(row.measured_bits * row.n for row in self.rows)
        return sent / components if components else math.nan


def probe_compression(
    gradients: nn.Module | Mapping[str, torch.Tensor],
    compressor: Compressor,
    *,
    policy: Policy | None = None,
    repeats: int = 16,
    seed: int = 0,
) -> CompressionProbeReport:
    """Compress given gradients again and again and hold the results to the method's bound.

    Args:
        gradients: a model after a backward pass, or tensors by name.
        compressor: quantizer and codec.
        policy: which tensors go exact; default ``Policy()``.
        repeats: independent roundings of each tensor, >= 2.
        seed: of the random streams.

    Returns:
        One row for every tensor that is not empty.

    Raises:
        ConfigError: no gradients, one that is not finite, or too few repeats.

    >>> from slimgrad import NUQSGD
    >>> gradients = {"conv.weight": torch.linspace(-1, 1, 4096).reshape(64, 64)}
    >>> report = probe_compression(gradients, Compressor(NUQSGD(bits=4)))
    >>> row = report.rows[0]
    >>> row.measured_variance < row.variance_bound, report.defects
    (True, ())
    """
    if not isinstance(repeats, int) or repeats < 2:
        raise ConfigError(f"repeats must be an integer >= 2, got {repeats!r}")
    tensors = _tensors(gradients)
    policy = Policy() if policy is None else policy
    rows = tuple(
        _probe(name, tensor, compressor, policy.is_exact(name, tuple(tensor.shape)), repeats, seed)
        for name, tensor in tensors.items()
    )
    return CompressionProbeReport(repr(compressor), repeats, rows)


def _tensors(gradients: nn.Module | Mapping[str, torch.Tensor]) -> dict[str, torch.Tensor]:
    if isinstance(gradients, nn.Module):
        named = {n: p.grad for n, p in gradients.named_parameters() if p.grad is not None}
        advice = "run loss.backward() on the model first"
    else:
        named, advice = dict(gradients), "give at least one tensor that is not empty"
    found = {name: tensor.detach() for name, tensor in named.items() if tensor.numel()}
    if not found:
        raise ConfigError(f"there is no gradient to compress: {advice}")
    for name, tensor in found.items():
        if not bool(tensor.isfinite().all()):
            raise ConfigError(
                f"tensor {name!r} is not finite everywhere, so no variance can be measured"
            )
    return found


def _probe(
    name: str, tensor: torch.Tensor, compressor: Compressor, exact: bool, repeats: int, seed: int
) -> TensorProbe:
    used = Compressor(None) if exact else compressor
    wanted = tensor.reshape(-1).double()
    signal = float(wanted.square().sum())
    variances, sizes, entropies = [], [], []
    for repeat in range(repeats):
        frame = used.compress(tensor, key=name, step=repeat, seed=seed)
        error = float((used.decompress(frame).double() - wanted).square().sum())
        variances.append(error / signal if signal else 0.0)
        sizes.append(8 * frame.numel() / tensor.numel())
        entropies.append(_entropy_bits(frame))
    mean = math.fsum(variances) / repeats
    spread = math.fsum((v - mean) ** 2 for v in variances) / (repeats - 1)
    standard_error = math.sqrt(spread / repeats)
    bound = used.error_bound(tensor.numel()) if used.method is not None else math.nan
    bound = bound if math.isfinite(bound) else math.nan
    # float32 arithmetic adds about 1e-6 of the values to what the bound speaks of.
    allowed = bound * (1 + 1e-5) + 1e-9 + _STANDARD_ERRORS * standard_error
    return TensorProbe(
        name=name,
        n=tensor.numel(),
        exact=exact,
        measured_variance=mean,
        standard_error=standard_error,
        variance_bound=bound,
        measured_bits=math.fsum(sizes) / repeats,
        entropy_bits=math.fsum(entropies) / repeats,
        is_defect=mean > allowed,
    )


def _entropy_bits(frame: torch.Tensor) -> float:
    decoded = wire.decode(frame)
    header = decoded.header
    if header.method != METHOD_QUANTIZED:
        return math.nan
    symbols = kernels.unpack_symbols(packed_symbols(decoded), header.symbols, header.bits)
    counts = torch.bincount(symbols.long(), minlength=1).double()
    shares = counts[counts > 0] / counts.sum()
    symbol_bits = -float((shares * shares.log2()).sum()) * header.symbols
    beside = 8 * (header.frame_bytes - header.payload_bytes)
    return (symbol_bits + beside) / header.n
