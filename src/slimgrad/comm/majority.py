"""Majority vote over the signs of several vectors."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import torch

from slimgrad.comm import frame as wire
from slimgrad.comm.decoding import values_of
from slimgrad.core.errors import ConfigError, FrameError


def majority_vote(frames: Sequence[torch.Tensor], *, serial: bool = False) -> torch.Tensor:
    """The sign most ranks sent, times the mean magnitude they sent.

    result_i = sign(sum over r of sign(q_r,i)) (1 / W) sum over r of |q_r,i|. A rank that sends 0
    does not vote; a tie is 0; one NaN makes the component NaN. With ``Sign`` frames the result
    holds -1, 0 and 1.

    Guarantee: none about the mean; a component is wrong only if half of the ranks or more are.
    Depends on the frames alone, added in their order, so every rank gets the same bits.

    Args:
        frames: one a rank, flat uint8, all of the same number of components.
        serial: keep the work on the calling thread.

    Returns:
        float32, flat.

    Raises:
        ConfigError: no frame.
        FrameError: bytes that are no valid frame, or frames of different lengths.

    >>> from slimgrad.comm.compressor import Compressor
    >>> from slimgrad.comm.quantizers import Sign
    >>> ranks = [[1.0, -2.0, 3.0], [4.0, -5.0, -6.0], [-7.0, -8.0, 9.0]]
    >>> compressor = Compressor(Sign())
    >>> frames = [compressor.compress(torch.tensor(v), key="w", step=0) for v in ranks]
    >>> majority_vote(frames)
    tensor([ 1., -1.,  1.])

    References:
        Bernstein, Wang, Azizzadenesheli, Anandkumar (2018), "signSGD", algorithm 2.
    """
    if not frames:
        raise ConfigError("majority_vote needs one frame or more")
    first = values_of(wire.decode(frames[0]), serial=serial)
    votes, sizes = np.sign(first.numpy()), np.abs(first.numpy())
    for frame in frames[1:]:
        decoded = wire.decode(frame)
        if decoded.header.n != len(votes):
            raise FrameError(
                f"the frame holds {decoded.header.n} components, the first {len(votes)}", 16
            )
        values = values_of(decoded, serial=serial).numpy()
        votes += np.sign(values)
        sizes += np.abs(values)
    return torch.from_numpy(np.sign(votes) * (sizes / np.float32(len(frames))))
