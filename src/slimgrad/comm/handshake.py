"""All ranks agree on the settings before the first gradient is sent."""

from __future__ import annotations

from collections.abc import Mapping

import torch

from slimgrad.comm.exchange.channel import Channel
from slimgrad.core.errors import ConfigError

_LIMIT_BYTES = 1 << 20


def require_same_settings(settings: Mapping[str, str], channel: Channel) -> None:
    """Compare ``settings`` over all ranks of ``channel``; to be called by every rank.

    Raises:
        ConfigError: on every rank, with the same text, naming both values of each setting in
            which some rank differs from rank 0.
    """
    text = "\n".join(f"{name}={value}" for name, value in settings.items())
    message = torch.frombuffer(bytearray(text.encode()), dtype=torch.uint8)
    messages = channel.gather_bytes(message, same_length=False, limit_bytes=_LIMIT_BYTES)
    texts = [bytes(received.numpy()).decode(errors="replace") for received in messages]
    for rank, other in enumerate(texts):
        if other != texts[0]:
            raise ConfigError(
                "ranks were given different compression settings: "
                f"{difference(texts[0], other, rank)}; give every rank the same arguments"
            )


def difference(first: str, other: str, rank: int) -> str:
    r"""The settings in which ``rank`` differs from rank 0, each with both values.

    >>> difference("bits=4\ncodec=fixed", "bits=3\ncodec=fixed", 1)
    'bits is 4 on rank 0 and 3 on rank 1'
    """
    ours, theirs = _parse(first), _parse(other)
    names = [name for name in {**ours, **theirs} if ours.get(name) != theirs.get(name)]
    return ", ".join(
        f"{name} is {ours.get(name, 'missing')} on rank 0 "
        f"and {theirs.get(name, 'missing')} on rank {rank}"
        for name in names
    )


def _parse(text: str) -> dict[str, str]:
    return {name: value for name, _, value in (line.partition("=") for line in text.splitlines())}
