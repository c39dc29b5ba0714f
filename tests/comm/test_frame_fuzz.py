"""Thousands of damaged frames: refused, or decoded to what the second decoder reads.

While a frame is read the process can hardly allocate, so that a frame that claims to be huge and
is believed fails the test.
"""

import random
import resource
import zlib
from contextlib import contextmanager
from pathlib import Path

import pytest
import slow_frame_decoder
import torch

from slimgrad.comm.compressor import Compressor
from slimgrad.comm.quantizers import EDEN, NUQSGD, Dithered, QSGDinf
from slimgrad.core.errors import FrameError

FRAMES = 3000
MEMORY_BYTES = 256 << 20


@contextmanager
def little_memory():
    """Allocations of more than MEMORY_BYTES on top of what is in use fail inside the block."""
    pages = int(Path("/proc/self/statm").read_text().split()[0])
    before = resource.getrlimit(resource.RLIMIT_AS)
    limit = pages * resource.getpagesize() + MEMORY_BYTES
    resource.setrlimit(resource.RLIMIT_AS, (limit, before[1]))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_AS, before)


def originals():
    vector = torch.linspace(-2, 2, 50)
    quantizers = [
        NUQSGD(bits=4, bucket_size=16),
        NUQSGD(bits=3, ratio=0.4),
        QSGDinf(bits=5, bucket_size=50),
        EDEN(bits=2),
        Dithered(bucket_size=16),
        None,
    ]
    frames = [Compressor(q).compress(vector, key="w", step=0) for q in quantizers]
    frames.append(Compressor(QSGDinf(bits=3), "raw").compress(vector, key="w", step=0))
    for codec in ("rans", "context"):
        frames.append(Compressor(QSGDinf(bits=3), codec).compress(vector, key="w", step=0))
    return [bytes(frame.numpy()) for frame in frames]


def reading(decode, data):
    """What ``decode`` reads, None when it refuses; any other error fails the test."""
    try:
        return decode(data)
    except (FrameError, slow_frame_decoder.RejectedError):
        return None


def damaged(frame, rng):
    data = bytearray(frame)
    for _ in range(rng.choice([1, 1, 2, 4])):
        kind = rng.randrange(5)
        position = rng.randrange(len(data)) if rng.random() < 0.4 else rng.randrange(64)
        position = min(position, len(data) - 1)
        if kind == 0:
            data[position] ^= 1 << rng.randrange(8)
        elif kind == 1:
            data[position] = rng.choice([0, 1, 2, 3, 4, 127, 128, 255])
        elif kind == 2:
            width = rng.choice([4, 8])
            value = rng.choice([0, 1, 2**31, 2**32 - 1, 2**40, 2**63, rng.getrandbits(12)])
            place = rng.choice([12, 16, 24, 32, 40, 48])
            data[place : place + width] = (value % 2 ** (8 * width)).to_bytes(width, "little")
        elif kind == 3:
            data = data[: max(1, len(data) - rng.randrange(1, 70))]
        else:
            data += rng.randbytes(rng.randrange(1, 9))
        if len(data) < 64:
            return bytes(data)
    if rng.random() < 0.8:
        # With a right checksum every other check has to stand on its own.
        crc = zlib.crc32(bytes(data[:60] + data[64:]))
        data[60:64] = crc.to_bytes(4, "little")
    return bytes(data)


def test_damaged_frames_are_refused_or_read_alike():
    rng = random.Random(20240229)
    frames = originals()
    decoder = Compressor(None)
    accepted = 0
    for index in range(FRAMES):
        data = damaged(frames[index % len(frames)], rng)
        expected = reading(slow_frame_decoder.decode, data)
        tensor = torch.frombuffer(bytearray(data), dtype=torch.uint8)
        with little_memory():
            decoded = reading(decoder.decompress, tensor)
        assert (decoded is None) == (expected is None), f"frame {index}: {data.hex()}"
        if decoded is not None and expected is not None:
            accepted += 1
            # The package reads float64 frames as float32.
            rounded = torch.tensor(expected, dtype=torch.float64).float()
            assert torch.equal(decoded.nan_to_num(7.0), rounded.nan_to_num(7.0))
    assert FRAMES / 50 < accepted < FRAMES / 2


def test_the_memory_limit_of_these_tests_works():
    with little_memory(), pytest.raises(RuntimeError):
        torch.empty(4 * MEMORY_BYTES, dtype=torch.uint8)
