"""Compressed gradient exchange for DistributedDataParallel."""

from __future__ import annotations

import functools
import hashlib
import warnings
from datetime import timedelta

import torch
import torch.distributed as dist
from torch.nn.parallel import DistributedDataParallel

from slimgrad.comm.compressor import Compressor
from slimgrad.comm.exchange import EXCHANGES, AllGather, Channel, Exchange
from slimgrad.comm.frame import DTYPE_IDS
from slimgrad.comm.handle import CompressionHandle
from slimgrad.comm.handshake import require_same_settings
from slimgrad.comm.header import WIRE_VERSION
from slimgrad.comm.policy import Policy
from slimgrad.comm.quantizers.base import Quantizer
from slimgrad.core.errors import ConfigError, NoEffectWarning
from slimgrad.core.registry import unknown_name_message
from slimgrad.core.rng import stream_key


def compress(
    ddp: DistributedDataParallel,
    quantizer: Quantizer | None,
    *,
    codec: str = "fixed",
    exchange: str = "auto",
    aggregate: str = "mean",
    feedback: None = None,
    policy: Policy | None = None,
    seed: int = 0,
) -> CompressionHandle:
    """Send the gradients of a DDP module compressed from now on.

    Every bucket becomes (1 / W) sum over ranks r of Q_r(g_r), with independent roundings Q_r. With
    ``quantizer=None`` compression is off: DDP's own operations, the same bits, but counted.

    Guarantee: every rank holds the same bits. If the quantizer is unbiased, so is the result, and
    its variance over the ranks' rounding is at most
    (1 / W^2) sum over r of ``quantizer.variance_bound`` times ||g_r||^2.

    To be called by every rank of the module's process group, with the same arguments; the ranks
    compare them. Exchanges run on one thread over a gloo group of their own, in the order of the
    buckets, while the backward pass goes on.

    Args:
        ddp: module on the CPU, without a communication hook.
        quantizer: for example ``NUQSGD(bits=4)``, or None.
        codec: name of a codec.
        exchange: name of an exchange; "auto" takes all_gather, or all_reduce without a quantizer.
        aggregate: "mean", or "majority" for the vote of signSGD, see ``majority_vote``.
        feedback: only None so far.
        policy: which tensors go exact; by default those of one dimension or under 1024 components.
        seed: of the random streams, which are (seed, step, parameter name, rank).

    Returns:
        A handle with ``report()``, ``state_dict()``, ``load_state_dict()`` and ``close()``.

    Raises:
        ConfigError: an argument that is not allowed, or that differs between ranks.

    Warns:
        NoEffectWarning: one rank only, nothing to compress, or a name pattern without a match.

    >>> compress(torch.nn.Linear(2, 2), None)
    Traceback (most recent call last):
    slimgrad.core.errors.ConfigError: compress needs a DistributedDataParallel module, got Linear

    References:
        Alistarh, Grubic, Li, Tomioka, Vojnovic (2017), algorithm 1.
    """
    if not isinstance(ddp, DistributedDataParallel):
        raise ConfigError(
            f"compress needs a DistributedDataParallel module, got {type(ddp).__name__}"
        )
    if feedback is not None:
        raise ConfigError(
            f"feedback={feedback!r} is not available; use feedback=None, "
            "which unbiased quantizers need no substitute for"
        )
    compressor = Compressor(quantizer, codec)
    chosen = _with_aggregate(_choose_exchange(exchange, quantizer), quantizer, aggregate)
    policy = Policy() if policy is None else policy
    if not isinstance(policy, Policy):
        raise ConfigError(f"policy must be a Policy or None, got {policy!r}")
    stream_key(seed, 0, "")
    parameters = {n: p for n, p in ddp.module.named_parameters() if p.requires_grad}
    _check_parameters(parameters)
    names = {id(parameter): name for name, parameter in parameters.items()}
    group = ddp.process_group
    assert isinstance(group, dist.ProcessGroup)
    if dist.get_world_size(group) == 1:
        _warn_once_about_one_rank()
        return CompressionHandle(names, compressor, chosen, policy, None, seed)
    if quantizer is not None:
        _warn_without_effect(parameters, policy)
    channel = Channel(_own_group(group))
    handle = CompressionHandle(names, compressor, chosen, policy, channel, seed)
    try:
        require_same_settings(_settings(compressor, chosen, policy, seed, parameters), channel)
        _register(ddp, handle)
    except BaseException:
        handle.close()
        raise
    return handle


def exchange_gradients(state, bucket):  # DDP refuses annotations that are strings
    """Communication hook of DDP: the mean of ``bucket`` by way of ``state``, a handle."""
    return state.average(bucket)


def _register(ddp: DistributedDataParallel, handle: CompressionHandle) -> None:
    try:
        ddp.register_comm_hook(handle, exchange_gradients)
    except RuntimeError as error:
        raise ConfigError(
            "this DDP module has a communication hook already, and DDP takes only one; "
            "wrap the network in a new DistributedDataParallel"
        ) from error


def _choose_exchange(name: str, quantizer: Quantizer | None) -> Exchange:
    if name == "auto":
        return EXCHANGES.get("all_reduce" if quantizer is None else "all_gather")()
    if name not in EXCHANGES:
        raise ConfigError(unknown_name_message("exchange", name, ["auto", *EXCHANGES]))
    chosen = EXCHANGES.get(name)()
    if quantizer is not None and not chosen.compresses:
        raise ConfigError(
            f"exchange {name!r} adds exact values and cannot carry {quantizer!r}; "
            "use exchange='auto' or 'all_gather'"
        )
    return chosen


def _with_aggregate(chosen: Exchange, quantizer: Quantizer | None, aggregate: str) -> Exchange:
    if aggregate == "mean":
        return chosen
    if quantizer is None or not isinstance(chosen, AllGather):
        raise ConfigError(
            f"aggregate={aggregate!r} needs a quantizer and exchange='auto' or 'all_gather'; "
            "use aggregate='mean'"
        )
    return AllGather(aggregate)


def _check_parameters(parameters: dict[str, torch.nn.Parameter]) -> None:
    for name, parameter in parameters.items():
        if parameter.device.type != "cpu" or parameter.dtype not in DTYPE_IDS:
            raise ConfigError(
                f"parameter {name!r} is {parameter.dtype} on {parameter.device}; compress handles "
                "float32, float16, bfloat16 and float64 parameters on the CPU"
            )


@functools.cache
def _warn_once_about_one_rank() -> None:
    warnings.warn(
        "there is one rank only: no gradient is sent, so compress does nothing",
        NoEffectWarning,
        stacklevel=3,
    )


def _warn_without_effect(parameters: dict[str, torch.nn.Parameter], policy: Policy) -> None:
    shapes = [(name, tuple(parameter.shape)) for name, parameter in parameters.items()]
    if policy.exact_share(shapes) == 1.0:
        warnings.warn(
            f"{policy!r} sends every tensor exactly, so nothing is compressed",
            NoEffectWarning,
            stacklevel=3,
        )
    for pattern in policy.unmatched(parameters):
        warnings.warn(
            f"the pattern {pattern!r} of exact_names matches no parameter",
            NoEffectWarning,
            stacklevel=3,
        )


def _own_group(group: dist.ProcessGroup) -> dist.ProcessGroup:
    """A gloo group on the ranks of ``group``, with its time-out."""
    ranks = dist.get_process_group_ranks(group)
    everyone = len(ranks) == dist.get_world_size()
    created = dist.new_group(
        ranks,
        timeout=_timeout(group),
        backend="gloo",
        use_local_synchronization=not everyone,
        group_desc="slimgrad_compress",
    )
    assert isinstance(created, dist.ProcessGroup)
    return created


def _timeout(group: dist.ProcessGroup) -> timedelta | None:
    # torch has no public way to ask; without one its default applies.
    try:
        return group._get_backend(torch.device("cpu")).options._timeout
    except (AttributeError, RuntimeError):
        return None


def _settings(
    compressor: Compressor,
    exchange: Exchange,
    policy: Policy,
    seed: int,
    parameters: dict[str, torch.nn.Parameter],
) -> dict[str, str]:
    layout = "\n".join(
        f"{name} {tuple(parameter.shape)} {parameter.dtype}"
        for name, parameter in parameters.items()
    )
    return {
        "wire format": str(WIRE_VERSION),
        "quantizer": repr(compressor.quantizer),
        "codec": compressor.codec.name,
        "exchange": exchange.name,
        "aggregate": getattr(exchange, "aggregate", "mean"),
        "policy": repr(policy),
        "seed": str(seed),
        "parameters": hashlib.blake2b(layout.encode(), digest_size=8).hexdigest(),
    }
