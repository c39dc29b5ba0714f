"""The parts of an entropy-coded payload, checked: frequencies, sizes of chunks, chunks."""

from __future__ import annotations

import numpy as np
import torch

from slimgrad.core.errors import ConfigError, FrameError
from slimgrad.kernels.checks import check_bits, check_count, check_size, check_vector
from slimgrad.kernels.packing import packed_bytes
from slimgrad.kernels.reference.rans import CHUNK, STATES, TOTAL, TOTAL_BITS


def check_packed(packed: torch.Tensor, n: int, bits: int) -> None:
    """ConfigError unless ``packed`` holds n symbols of ``bits`` bits."""
    check_size("packed", packed, torch.uint8, packed_bytes(n, bits))


def check_frequencies(frequencies: torch.Tensor, tables: int, bits: int) -> torch.Tensor:
    """The frequencies of ``tables`` tables as int64, one row a table.

    Raises:
        ConfigError: another size or dtype, or a table that does not add up to 4096.
    """
    check_size("frequencies", frequencies, torch.int64, tables << bits)
    rows = frequencies.reshape(tables, -1)
    if not _is_distribution(rows):
        raise ConfigError(f"frequencies must not be negative and add up to {TOTAL} in each table")
    return rows


def read_tables(payload: torch.Tensor, tables: int, bits: int) -> torch.Tensor:
    """The frequencies at the start of a payload, int64, one row a table.

    Raises:
        FrameError: cut, or a table that does not add up to 4096.
    """
    size = table_bytes(tables, bits)
    if len(payload) < size:
        raise FrameError(f"the frequencies take {size} bytes, {len(payload)} are there", 0)
    values = payload[:size].numpy().copy().view("<u2").astype(np.int64)
    rows = torch.from_numpy(values).view(tables, -1)
    if not _is_distribution(rows):
        raise FrameError(f"the frequencies do not add up to {TOTAL}", 0)
    return rows


def read_places(payload: torch.Tensor, n: int, position: int, run: int) -> torch.Tensor:
    """Where the chunks of ``n`` symbols begin in the payload, int64, and where the last one ends.

    Args:
        payload: flat uint8.
        n: symbols, >= 1.
        position: of the sizes in the payload.
        run: symbols that a state codes one after another before the next state has its turn.

    Raises:
        FrameError: cut, or sizes that do not add up to the payload.
    """
    count = -(-n // CHUNK)
    start = position + 4 * count
    if len(payload) < start:
        raise FrameError(f"the sizes end at {start}, {len(payload)} bytes are there", position)
    words = payload[position:start].numpy().copy().view("<u4").astype(np.int64)
    lengths = 2 * words + 4 * np.array([states(c, run) for c in chunk_sizes(n)])
    places = np.concatenate([[start], start + np.cumsum(lengths)])
    if places[-1] != len(payload):
        raise FrameError(f"the chunks end at {places[-1]}, not at {len(payload)}", position)
    return torch.from_numpy(places)


def payload_bounds(n: int, tables: int, bits: int, run: int) -> tuple[int, int]:
    """The least and the most bytes of an entropy-coded payload of ``n`` symbols.

    >>> payload_bounds(0, 1, 4, 1), payload_bounds(1000, 1, 4, 1)
    ((0, 0), (548, 2548))
    """
    check_bits(bits)
    check_count(n)
    if n == 0:
        return 0, 0
    whole, rest = divmod(n, CHUNK)
    least = table_bytes(tables, bits) + whole * (4 + 4 * STATES)
    if rest:
        least += 4 + 4 * states(rest, run)
    return least, least + 2 * n


def table_bytes(tables: int, bits: int) -> int:
    """Bytes of the frequencies of ``tables`` tables."""
    return 2 * tables << bits


def chunk_sizes(n: int) -> list[int]:
    """Symbols of every chunk."""
    return [min(CHUNK, n - start) for start in range(0, n, CHUNK)]


def states(symbols: int, run: int) -> int:
    """States of a chunk: as many as it has runs, at most 128."""
    return min(STATES, -(-symbols // run))


def check_payload(payload: torch.Tensor, n: int, bits: int) -> None:
    """ConfigError unless the arguments of a decoder are of the right kind."""
    check_bits(bits)
    check_count(n)
    check_vector("payload", payload, torch.uint8)


def entropy(frequencies: torch.Tensor) -> float:
    """Bits a symbol of a vector in which symbols occur as ``frequencies`` say.

    >>> entropy(torch.tensor([2048, 1024, 1024]))
    1.5
    """
    shares = frequencies[frequencies > 0].double() / frequencies.sum()
    return float(-(shares * shares.log2()).sum()) + 0.0


def _is_distribution(rows: torch.Tensor) -> bool:
    return bool((rows >= 0).all()) and bool((rows.sum(1) == TOTAL).all())


__all__ = [
    "TOTAL",
    "TOTAL_BITS",
    "check_frequencies",
    "check_packed",
    "check_payload",
    "chunk_sizes",
    "entropy",
    "payload_bounds",
    "read_places",
    "read_tables",
    "states",
    "table_bytes",
]
