"""Which components a sparse frame holds, as bytes: gaps in a Golomb-Rice code, or no bytes."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from slimgrad.comm.sparsifiers.base import Kept
from slimgrad.comm.sparsifiers.randomk import stratified_places
from slimgrad.core.errors import FrameError

GAPS, STREAM = 1, 2
MAX_PARAMETER = 31


class CodedPlaces(NamedTuple):
    """Places as they travel.

    Attributes:
        coding: GAPS, or STREAM where a receiver finds the places by itself.
        parameter: low bits of a gap that are sent as they are; 0 unless the coding is GAPS.
        section: uint8.
    """

    coding: int
    parameter: int
    section: np.ndarray


def encode_places(kept: Kept) -> CodedPlaces:
    """The places of ``kept``, in as few bytes as a Golomb-Rice code of the gaps takes.

    About log2(n / k) + 1.5 bits a place if places are spread at random, + 2 at most. With no low
    bits the code is a bitmap that ends with the last place, so that it never takes more than that,
    nor more than a list of numbers.

    >>> from slimgrad.comm.sparsifiers import TopK
    >>> import torch
    >>> kept = TopK(keep=0.01).select(torch.arange(10000.0), key=0)
    >>> coded = encode_places(kept)
    >>> coded.coding == GAPS, len(coded.section)
    (True, 107)
    """
    if kept.key is not None:
        return CodedPlaces(STREAM, 0, np.empty(0, dtype=np.uint8))
    places = kept.places.numpy()
    gaps = np.diff(places, prepend=-1) - 1
    parameter = _best_parameter(gaps)
    return CodedPlaces(GAPS, parameter, _encode_gaps(gaps, parameter))


def decode_places(coded: CodedPlaces, n: int, k: int, key: int) -> np.ndarray:
    """The k places, int64, ascending, each below n.

    Nothing is allocated that k and the section do not pay for.

    Raises:
        FrameError: the section is not what an encoder writes; position from its start.
    """
    coding, parameter, section = coded
    if coding == STREAM:
        return stratified_places(n, k, key)
    low_bytes = -(-k * parameter // 8)
    unary_bytes = len(section) - low_bytes
    if k == 0 or unary_bytes <= 0:
        if k == 0 and len(section) == 0:
            return np.empty(0, dtype=np.int64)
        raise FrameError(f"{len(section)} bytes are not {k} gaps", 0)
    unary = np.unpackbits(section[:unary_bytes], bitorder="little")
    if int(np.count_nonzero(unary)) != k or not section[unary_bytes - 1]:
        raise FrameError(f"the gaps do not end {k} times, last in the last byte", 0)
    ends = np.flatnonzero(unary)
    quotients = np.diff(ends, prepend=-1) - 1
    # Checked first, so that nothing below overflows.
    if int(ends[-1]) - (k - 1) > (n - 1) >> parameter:
        raise FrameError(f"the gaps lead beyond {n} components", 0)
    low = np.unpackbits(section[unary_bytes:], bitorder="little")
    if low[k * parameter :].any():
        raise FrameError("bits are set behind the last gap", len(section) - 1)
    steps = (quotients << parameter) + 1
    for bit in range(parameter):
        steps += low[bit : k * parameter : parameter].astype(np.int64) << bit
    places = np.cumsum(steps) - 1
    if places[-1] >= n:
        raise FrameError(f"the gaps lead beyond {n} components", 0)
    return places


def _best_parameter(gaps: np.ndarray) -> int:
    k = len(gaps)
    if k == 0:
        return 0
    middle = (int(gaps.sum()) // k).bit_length()
    candidates = range(max(0, middle - 2), min(MAX_PARAMETER, middle) + 1)
    found = {p: -(-(int((gaps >> p).sum()) + k) // 8) - (-k * p // 8) for p in candidates}
    return min(found, key=lambda p: (found[p], p))


def _encode_gaps(gaps: np.ndarray, parameter: int) -> np.ndarray:
    ends = np.cumsum((gaps >> parameter) + 1)
    unary = np.zeros(int(ends.max(initial=0)), dtype=np.uint8)
    unary[ends - 1] = 1
    low = np.empty((len(gaps), parameter), dtype=np.uint8)
    for bit in range(parameter):
        low[:, bit] = gaps >> bit & 1
    strings = [np.packbits(bits, bitorder="little") for bits in (unary, low.ravel())]
    return np.concatenate(strings)
