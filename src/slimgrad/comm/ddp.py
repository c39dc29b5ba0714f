"""Compressed gradient exchange for DistributedDataParallel."""

from __future__ import annotations

import functools
import hashlib
import warnings
from datetime import timedelta

import torch
import torch.distributed as dist
from torch.nn.parallel import DistributedDataParallel

from slimgrad.comm.codecs import Codec
from slimgrad.comm.compressor import Compressor, Method
from slimgrad.comm.exchange import EXCHANGES, AllGather, Channel, Exchange
from slimgrad.comm.feedback import Feedback
from slimgrad.comm.frame import DTYPE_IDS
from slimgrad.comm.handle import CompressionHandle
from slimgrad.comm.handshake import require_same_settings
from slimgrad.comm.header import WIRE_VERSION
from slimgrad.comm.policy import Policy
from slimgrad.comm.quantizers.adaptive import AdaptiveQuantizer
from slimgrad.comm.quantizers.base import Quantizer
from slimgrad.comm.sparsifiers.base import Sparsifier
from slimgrad.core.errors import ConfigError, NoEffectWarning
from slimgrad.core.registry import unknown_name_message
from slimgrad.core.rng import stream_key


def compress(
    ddp: DistributedDataParallel,
    quantizer: Method | None,
    *,
    codec: str | Codec = "fixed",
    values: Quantizer | None = None,
    exchange: str = "auto",
    aggregate: str = "mean",
    feedback: Feedback | None = None,
    policy: Policy | None = None,
    seed: int = 0,
) -> CompressionHandle:
    """Send the gradients of a DDP module compressed from now on.

    Every bucket becomes (1 / W) sum over ranks r of Q_r(g_r), with independent randomness in Q_r.
    With ``quantizer=None`` compression is off: DDP's own operations, the same bits, but counted.

    Guarantee: every rank holds the same bits. Without feedback, if the method is unbiased, so is
    the result, and its variance is at most
    (1 / W^2) sum over r of ``quantizer.variance_bound`` times ||g_r||^2.

    To be called by every rank of the module's process group, with the same arguments; the ranks
    compare them. Exchanges run on one thread over a gloo group of their own, in the order of the
    buckets, while the backward pass goes on.

    Args:
        ddp: module on the CPU, without a communication hook.
        quantizer: the method: a quantizer, a sparsifier or a low-rank method, for example
            ``NUQSGD(bits=4)``, ``TopK(keep=0.01)`` or ``PowerSGD(rank=4)``; or None.
        codec: name of a codec, or a codec.
        values: quantizer of what a sparsifier or low-rank method sends, or None.
        exchange: name of an exchange; "auto" takes all_gather, or all_reduce without a quantizer.
        aggregate: "mean", or "majority" for the vote of signSGD, see ``majority_vote``.
        feedback: ``ErrorFeedback()`` or ``DGC()``, which add what earlier frames left out, or None.
        policy: which tensors go exact, by default those of one dimension or under 1024 components;
            and settings by layer and by step.
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
    compressor = Compressor(quantizer, codec, values)
    chosen = _with_aggregate(_choose_exchange(exchange, quantizer), quantizer, aggregate, feedback)
    policy = Policy() if policy is None else policy
    if not isinstance(policy, Policy):
        raise ConfigError(f"policy must be a Policy or None, got {policy!r}")
    for pattern, each in policy.layers:
        if each is not None and isinstance(each.method, AdaptiveQuantizer):
            raise ConfigError(
                f"layers {pattern!r} of the policy have {each.method!r}, whose levels follow all "
                "tensors; give it as the quantizer of compress() instead"
            )
    for _, strength in policy.strength:
        compressor.with_strength(strength)
    stream_key(seed, 0, "")
    parameters = {n: p for n, p in ddp.module.named_parameters() if p.requires_grad}
    _check_parameters(parameters)
    check_feedback(feedback, compressor, policy, parameters)
    names = {id(parameter): name for name, parameter in parameters.items()}
    group = ddp.process_group
    assert isinstance(group, dist.ProcessGroup)
    if dist.get_world_size(group) == 1:
        _warn_once_about_one_rank()
        return CompressionHandle(names, compressor, chosen, policy, None, seed, feedback)
    if quantizer is not None:
        _warn_without_effect(parameters, policy)
    channel = Channel(_own_group(group))
    handle = CompressionHandle(names, compressor, chosen, policy, channel, seed, feedback)
    try:
        settings = _settings(compressor, chosen, policy, seed, parameters)
        require_same_settings({**settings, "feedback": repr(feedback)}, channel)
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


def _choose_exchange(name: str, quantizer: Method | None) -> Exchange:
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


def _with_aggregate(
    chosen: Exchange, method: Method | None, aggregate: str, feedback: Feedback | None
) -> Exchange:
    if aggregate == "mean":
        return chosen
    if not isinstance(method, Quantizer) or not isinstance(chosen, AllGather) or feedback:
        raise ConfigError(
            f"aggregate={aggregate!r} needs a quantizer, no feedback, and exchange='auto' or "
            "'all_gather'; use aggregate='mean'"
        )
    return AllGather(aggregate)


def _check_parameters(parameters: dict[str, torch.nn.Parameter]) -> None:
    for name, parameter in parameters.items():
        if parameter.device.type != "cpu" or parameter.dtype not in DTYPE_IDS:
            raise ConfigError(
                f"parameter {name!r} is {parameter.dtype} on {parameter.device}; compress handles "
                "float32, float16, bfloat16 and float64 parameters on the CPU"
            )


def check_feedback(
    feedback: Feedback | None,
    compressor: Compressor,
    policy: Policy,
    parameters: dict[str, torch.nn.Parameter],
) -> None:
    """Refuse feedback that has nothing to add, or whose memory could grow without limit.

    Args:
        feedback: the rule, or None.
        compressor: what sends the parameters that ``policy`` does not send otherwise.
        policy: settings by layer and by step.
        parameters: by name; only their names and shapes are looked at.

    Raises:
        ConfigError: such a rule, with the reason.
    """
    if feedback is None:
        return
    if not isinstance(feedback, Feedback):
        raise ConfigError(f"feedback must be ErrorFeedback(), DGC() or None, got {feedback!r}")
    if compressor.method is None and not policy.layers:
        raise ConfigError(f"{feedback!r} has nothing to add to exact values; use feedback=None")
    shares = isinstance(compressor.method, Sparsifier) and compressor.method.strength == "keep"
    if feedback.warm_up and not shares:
        raise ConfigError(
            f"{feedback!r} changes the share that a sparsifier keeps, and {compressor.method!r} "
            "keeps none; use warm_up=0"
        )
    for name, parameter in parameters.items():
        for step in (policy.warm_up, *(first for first, _ in policy.strength)):
            chosen = policy.compressor_for(name, tuple(parameter.shape), step, compressor)
            if chosen is None or chosen.method is None or not chosen.method.unbiased:
                continue
            bound = chosen.error_bound(parameter.numel())
            if bound < 1:
                continue
            raise ConfigError(
                f"{chosen!r} can err by {bound:.3g} times the square of {name!r}, and below 1 is "
                "what feedback needs: its memory could grow without limit; use more bits, smaller "
                "buckets, a biased method such as TopK or RandomK(scaled=False), or feedback=None"
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
            f"the pattern {pattern!r} of the policy matches no parameter",
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
        "method": repr(compressor.method),
        "values": repr(compressor.values),
        "codec": compressor.codec.name,
        "exchange": exchange.name,
        "aggregate": getattr(exchange, "aggregate", "mean"),
        "policy": repr(policy),
        "seed": str(seed),
        "parameters": hashlib.blake2b(layout.encode(), digest_size=8).hexdigest(),
    }
