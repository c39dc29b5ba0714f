"""Which components a sparse frame holds, as bytes: the shortest of three codings, or none."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from slimgrad.comm.sparsifiers.base import Kept
from slimgrad.comm.sparsifiers.randomk import stratified_places
from slimgrad.core.errors import FrameError

LIST, GAPS, BITMAP, STREAM = 0, 1, 2, 3
MAX_PARAMETER = 31


class CodedPlaces(NamedTuple):
    """Places as they travel.

    Attributes:
        coding: LIST, GAPS, BITMAP or STREAM.
        parameter: low bits of a gap that are sent as they are; 0 unless the coding is GAPS.
        section: uint8.
    """

    coding: int
    parameter: int
    section: np.ndarray


def encode_places(kept: Kept) -> CodedPlaces:
    """The places of ``kept`` in the coding that takes the fewest bytes.

    A place takes 32 bits in a list, n / k bits in a bitmap, and as a gap to the place before it in
    a Golomb-Rice code log2(n / k) + 1.5 bits if places are spread at random, + 2 at most.

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
    k = len(places)
    gaps = np.diff(places, prepend=-1) - 1
    parameter, gap_bytes = _best_parameter(gaps)
    lengths = {LIST: 4 * k, GAPS: gap_bytes, BITMAP: -(-kept.n // 8)}
    coding = min(lengths, key=lambda c: (lengths[c], c))
    if coding == LIST:
        return CodedPlaces(LIST, 0, places.astype("<u4").view(np.uint8))
    if coding == BITMAP:
        bits = np.zeros(kept.n, dtype=np.uint8)
        bits[places] = 1
        return CodedPlaces(BITMAP, 0, np.packbits(bits, bitorder="little"))
    return CodedPlaces(GAPS, parameter, _encode_gaps(gaps, parameter))


def decode_places(coded: CodedPlaces, n: int, k: int, key: int) -> np.ndarray:
    """The k places, int64, ascending, each below n.

    Nothing is allocated that k and the section do not pay for, except n / 8 bytes times 8 for a
    bitmap.

    Raises:
        FrameError: the section is not what an encoder writes; position from its start.
    """
    coding, parameter, section = coded
    if coding == STREAM:
        return stratified_places(n, k, key)
    if coding == GAPS:
        return _decode_gaps(section, parameter, n, k)
    if coding == BITMAP:
        bits = np.unpackbits(section, bitorder="little")
        if bits[n:].any():
            raise FrameError("bits are set behind the last component", len(section) - 1)
        if int(np.count_nonzero(bits)) != k:
            raise FrameError(f"the bitmap holds {np.count_nonzero(bits)} places, not {k}", 0)
        return np.flatnonzero(bits)
    if len(section) != 4 * k:
        raise FrameError(f"{k} places take {4 * k} bytes, not {len(section)}", 0)
    places = section.copy().view("<u4").astype(np.int64)
    if k and (places[-1] >= n or not (np.diff(places) > 0).all()):
        raise FrameError(f"the places do not ascend strictly to below {n}", 0)
    return places


def _best_parameter(gaps: np.ndarray) -> tuple[int, int]:
    k = len(gaps)
    if k == 0:
        return 0, 0
    middle = (int(gaps.sum()) // k).bit_length()
    candidates = range(max(0, middle - 2), min(MAX_PARAMETER, middle) + 1)
    found = {p: -(-(int((gaps >> p).sum()) + k) // 8) - (-k * p // 8) for p in candidates}
    best = min(found, key=lambda p: (found[p], p))
    return best, found[best]


def _encode_gaps(gaps: np.ndarray, parameter: int) -> np.ndarray:
    ends = np.cumsum((gaps >> parameter) + 1)
    unary = np.zeros(int(ends[-1]), dtype=np.uint8)
    unary[ends - 1] = 1
    low = (gaps[:, None] >> np.arange(parameter) & 1).astype(np.uint8)
    return np.concatenate(
        [np.packbits(unary, bitorder="little"), np.packbits(low.ravel(), bitorder="little")]
    )


def _decode_gaps(section: np.ndarray, parameter: int, n: int, k: int) -> np.ndarray:
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
    weights = np.int64(1) << np.arange(parameter)
    remainders = low[: k * parameter].reshape(k, parameter) @ weights
    places = np.cumsum((quotients << parameter) + remainders + 1) - 1
    if places[-1] >= n:
        raise FrameError(f"the gaps lead beyond {n} components", 0)
    return places
