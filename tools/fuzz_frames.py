"""Reads damaged frames of every method and codec: refused, or read as a second decoder reads them.

    python tools/fuzz_frames.py --frames 100000 --seed 1

A frame that crashes the process, takes longer than ten seconds, raises anything but a FrameError,
decodes to other values, or makes the process allocate more than 256 MiB ends the run. The second
decoder is tests/comm/slow_frame_decoder.py.
"""

from __future__ import annotations

import argparse
import collections
import faulthandler
import itertools
import random
import resource
import sys
import zlib
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path

import torch

from slimgrad.comm.codecs import CODECS
from slimgrad.comm.compressor import Compressor
from slimgrad.comm.lowrank import LOW_RANK
from slimgrad.comm.quantizers import NUQSGD, QUANTIZERS, QSGDinf
from slimgrad.comm.sparsifiers import SPARSIFIERS
from slimgrad.core.errors import FrameError

sys.path.insert(0, str(Path(__file__).parent.parent / "tests" / "comm"))
import slow_frame_decoder  # pyright: ignore[reportMissingImports]

MEMORY_BYTES = 256 << 20
SECONDS_A_FRAME = 10
HEADER_BYTES = 64
LIMIT = 10_000  # components that a few bytes may stand for
NEEDED = {"levels": {"levels": (0.0, 0.25, 1.0)}}  # settings without a default
FIELDS = (12, 16, 24, 32, 40, 48)  # where numbers of 4 and 8 bytes begin


class Misread(Exception):  # noqa: N818
    """A damaged frame was not read as it should be."""


@dataclass
class Outcome:
    """How many damaged frames of each kind were refused, and how many decoded."""

    refused: collections.Counter[str] = field(default_factory=collections.Counter)
    decoded: collections.Counter[str] = field(default_factory=collections.Counter)


def originals() -> dict[str, bytes]:
    """A valid frame of every method, every codec at several widths, and every exact dtype."""
    vector = torch.linspace(-2, 2, 50)
    long = torch.randn(1100, generator=torch.Generator().manual_seed(1))
    compressors = {
        name: Compressor(QUANTIZERS.get(name)(**NEEDED.get(name, {}))) for name in QUANTIZERS
    }
    compressors["table"] = Compressor(NUQSGD(bits=3, ratio=0.4))
    compressors["short buckets"] = Compressor(NUQSGD(bits=4, bucket_size=16))
    for name in CODECS:
        for bits in (2, 3, 4, 7):
            compressors[f"{name} {bits}"] = Compressor(QSGDinf(bits=bits, bucket_size=30), name)
    frames = {
        name: compressor.compress(vector, key="w", step=0)
        for name, compressor in compressors.items()
    }
    for name in CODECS:
        frames[f"{name} long"] = Compressor(NUQSGD(), name).compress(long, key="w", step=0)
        frames[f"{name} empty"] = Compressor(NUQSGD(), name).compress(long[:0], key="w", step=0)
    matrix = vector.view(5, 10)
    for registry, strength in ((SPARSIFIERS, 0.2), (LOW_RANK, 1)):
        for name, values in itertools.product(registry, (None, NUQSGD(bits=3))):
            method = registry.get(name)(strength)  # pyright: ignore[reportCallIssue]
            compressor = Compressor(method, "fixed", values)
            label = f"{registry.kind} {name} of {values.name if values else 'float32'}"
            frames[label] = compressor.compress(matrix, key="w", step=0)
    for dtype in (torch.float32, torch.float16, torch.bfloat16, torch.float64):
        frames[str(dtype)] = Compressor(None).compress(vector.to(dtype), key="w", step=0)
    return {name: bytes(frame.numpy()) for name, frame in frames.items()}


def damaged(frame: bytes, rng: random.Random) -> bytes:
    """The frame with one to four things changed, mostly with checksums that are right again."""
    data = bytearray(frame)
    for _ in range(rng.choice([1, 1, 2, 4])):
        _damage(data, rng)
        if len(data) < HEADER_BYTES:
            return bytes(data)
    if rng.random() < 0.8:
        # With a right checksum every other check has to stand on its own.
        starts = [0]
        while (inner := data.find(b"SGRD", starts[-1] + HEADER_BYTES)) > 0:
            starts.append(inner)
        for start in reversed(starts):
            _seal(data, start)
    return bytes(data)


def _damage(data: bytearray, rng: random.Random) -> None:
    kind = rng.choice([0, 0, 0, 0, 1, 1, 2, 3, 4])
    position = rng.randrange(len(data)) if rng.random() < 0.6 else rng.randrange(HEADER_BYTES)
    position = min(position, len(data) - 1)
    if kind == 0:
        data[position] ^= 1 << rng.randrange(8)
    elif kind == 1:
        data[position] = rng.choice([0, 1, 2, 3, 4, 5, 6, 7, 8, 127, 128, 255])
    elif kind == 2:
        width = rng.choice([4, 8])
        value = rng.choice([0, 1, 2**31, 2**32 - 1, 2**40, 2**63, rng.getrandbits(12)])
        place = rng.choice(FIELDS)
        data[place : place + width] = (value % 2 ** (8 * width)).to_bytes(width, "little")
    elif kind == 3:
        del data[max(1, len(data) - rng.randrange(1, 70)) :]
    else:
        data += rng.randbytes(rng.randrange(1, 9))


def _seal(data: bytearray, start: int) -> None:
    if len(data) >= start + HEADER_BYTES:
        crc = zlib.crc32(data[start + HEADER_BYTES :], zlib.crc32(data[start : start + 60]))
        data[start + 60 : start + HEADER_BYTES] = crc.to_bytes(4, "little")


@contextmanager
def little_memory() -> Iterator[None]:
    """Allocations of more than MEMORY_BYTES on top of what is in use fail inside the block."""
    pages = int(Path("/proc/self/statm").read_text().split()[0])
    before = resource.getrlimit(resource.RLIMIT_AS)
    limit = pages * resource.getpagesize() + MEMORY_BYTES
    resource.setrlimit(resource.RLIMIT_AS, (limit, before[1]))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_AS, before)


def check(data: bytes, decode: Callable[[torch.Tensor], torch.Tensor]) -> bool:
    """Whether the bytes decode; Misread unless both decoders say so, with the same values."""
    tensor = torch.frombuffer(bytearray(data), dtype=torch.uint8)
    faulthandler.dump_traceback_later(SECONDS_A_FRAME, exit=True)
    try:
        with little_memory():
            values = decode(tensor)
    except FrameError:
        values = None
    except Exception as error:
        raise Misread(f"{error!r} instead of a FrameError: {data.hex()}") from error
    finally:
        faulthandler.cancel_dump_traceback_later()
    try:
        expected = slow_frame_decoder.decode(data, limit=LIMIT)
    except slow_frame_decoder.RejectedError as rejection:
        if values is not None:
            raise Misread(f"decoded although {rejection}: {data.hex()}") from rejection
        return False
    if values is None:
        raise Misread(f"refused what the second decoder reads: {data.hex()}")
    # The package reads float64 frames as float32.
    rounded = torch.tensor(expected, dtype=torch.float64).float()
    if not torch.equal(values.nan_to_num(7.0), rounded.nan_to_num(7.0)):
        raise Misread(f"other values than those of the second decoder: {data.hex()}")
    return True


def fuzz(frames: int, seed: int) -> Outcome:
    """Damages and reads that many frames, taking the originals in turn."""
    rng = random.Random(seed)
    valid = originals()
    names = sorted(valid)
    decode = partial(Compressor(None).decompress, limit=LIMIT)
    outcome = Outcome()
    for index in range(frames):
        name = names[index % len(names)]
        accepted = check(damaged(valid[name], rng), decode)
        (outcome.decoded if accepted else outcome.refused)[name] += 1
    return outcome


def main() -> int:
    parser = argparse.ArgumentParser(description="Read damaged frames.")
    parser.add_argument("--frames", type=int, default=100_000)
    parser.add_argument("--seed", type=int, default=1)
    options = parser.parse_args()
    try:
        outcome = fuzz(options.frames, options.seed)
    except Misread as error:
        print(f"fuzz: {error}", file=sys.stderr)
        return 1
    for name in sorted(outcome.refused):
        print(f"{name:40} {outcome.refused[name]:6} refused {outcome.decoded[name]:6} decoded")
    print(f"{outcome.refused.total()} refused, {outcome.decoded.total()} decoded as they should be")
    return 0


if __name__ == "__main__":
    sys.exit(main())
