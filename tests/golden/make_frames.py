"""Writes the golden frames: python tests/golden/make_frames.py

Run it only when the wire format gets a new version, or to add cases; a change in the bytes of an
existing case breaks every reader. ``good.json`` holds what each case is made of, the frame and the
values it decodes to; ``bad.json`` frames that must be refused, with the place.
"""

from __future__ import annotations

import base64
import json
import struct
import zlib
from pathlib import Path

import torch

from slimgrad.comm.compressor import Compressor
from slimgrad.comm.lowrank import PowerSGD
from slimgrad.comm.quantizers import NUQSGD, QUANTIZERS, QSGDinf
from slimgrad.comm.sparsifiers import RandomK, Threshold, TopK

FOLDER = Path(__file__).parent
CASES = {
    "nuqsgd-4bit": ("nuqsgd", {"bits": 4, "bucket_size": 64}, "fixed", 600, "float32"),
    "nuqsgd-3bit-linf": (
        "nuqsgd",
        {"bits": 3, "bucket_size": 100, "norm": "linf"},
        "fixed",
        530,
        "float32",
    ),
    "nuqsgd-2bit": ("nuqsgd", {"bits": 2, "bucket_size": 7}, "fixed", 45, "float32"),
    "nuqsgd-table": ("nuqsgd", {"bits": 4, "ratio": 0.4}, "fixed", 37, "float32"),
    "nuqsgd-raw-codec": ("nuqsgd", {"bits": 5, "bucket_size": 16}, "raw", 33, "bfloat16"),
    "qsgd-7bit": ("qsgd", {"bits": 7, "bucket_size": 512}, "fixed", 513, "float32"),
    "qsgdinf-8bit": ("qsgdinf", {"bits": 8, "bucket_size": 50}, "fixed", 101, "float64"),
    "qsgdinf-6bit": ("qsgdinf", {"bits": 6, "bucket_size": 1}, "fixed", 9, "float16"),
    "terngrad": ("terngrad", {"bucket_size": 20}, "fixed", 50, "float32"),
    "terngrad-clipped": ("terngrad", {"bucket_size": 20, "clip": 1.5}, "fixed", 50, "float32"),
    "natural": ("natural", {"bucket_size": 30}, "fixed", 70, "float32"),
    "natural-5bit": ("natural", {"bits": 5, "bucket_size": 512}, "fixed", 530, "float32"),
    "sign": ("sign", {"bucket_size": 100}, "fixed", 530, "float32"),
    "efsign": ("efsign", {"bucket_size": 64}, "fixed", 530, "float32"),
    "levels": ("levels", {"levels": (0, 0.1, 0.3, 0.6, 1), "norm": "linf"}, "fixed", 40, "float32"),
    "nozero-uniform": ("nozero", {"kind": "uniform", "bucket_size": 64}, "fixed", 530, "float32"),
    "nozero-1bit": ("nozero", {"bits": 1, "norm": "linf"}, "raw", 20, "float32"),
    "alq": ("alq", {"bits": 3}, "fixed", 20, "float32"),
    "amq": ("amq", {"bits": 3}, "fixed", 20, "float32"),
    "eden-4bit": ("eden", {"bits": 4}, "fixed", 700, "float32"),
    "eden-3bit": ("eden", {"bits": 3}, "fixed", 30, "float32"),
    "eden-2bit": ("eden", {"bits": 2}, "raw", 512, "bfloat16"),
    "eden-1bit": ("eden", {"bits": 1}, "fixed", 1, "float64"),
    "eden-empty": ("eden", {}, "fixed", 0, "float32"),
    "elias-gamma": ("nuqsgd", {"bits": 4, "bucket_size": 64}, "elias_gamma", 600, "float32"),
    "elias-delta": ("qsgd", {"bits": 5, "bucket_size": 512}, "elias_delta", 530, "float32"),
    "elias-omega": ("qsgd", {"bits": 3, "bucket_size": 128}, "elias_omega", 130, "float32"),
    "elias-empty": ("qsgd", {"bits": 4}, "elias_omega", 0, "float32"),
    "huffman": ("nuqsgd", {"bits": 4, "bucket_size": 64}, "huffman", 601, "float32"),
    "huffman-pairs": ("nuqsgd", {"bits": 4, "bucket_size": 64}, "huffman_pairs", 601, "float32"),
    "huffman-pairs-3bit": ("qsgd", {"bits": 3}, "huffman_pairs", 515, "float32"),
    "huffman-pairs-5bit": ("qsgdinf", {"bits": 5}, "huffman_pairs", 40, "float32"),
    "huffman-alone": ("qsgd", {"bits": 2, "bucket_size": 7}, "huffman", 1, "float32"),
    "huffman-empty": ("qsgd", {"bits": 4}, "huffman_pairs", 0, "float32"),
    "dithered-4bit": ("dithered", {"bits": 4, "bucket_size": 64}, "fixed", 600, "float32"),
    "dithered-8bit": (
        "dithered",
        {"step_rms": 0.05, "bits": 8, "bucket_size": 100},
        "fixed",
        130,
        "float32",
    ),
    "dithered-2bit-raw-codec": ("dithered", {"step_rms": 3.0, "bits": 2}, "raw", 21, "float32"),
    "empty": ("qsgd", {"bits": 4}, "fixed", 0, "float32"),
    "rans-4bit": ("nuqsgd", {"bits": 4, "bucket_size": 64}, "rans", 700, "float32"),
    "rans-8bit": ("qsgdinf", {"bits": 8, "bucket_size": 32}, "rans", 77, "float32"),
    "rans-empty": ("qsgd", {"bits": 3}, "rans", 0, "float32"),
    "context-4bit": ("nuqsgd", {"bits": 4, "bucket_size": 64}, "context", 1100, "float32"),
    "context-6bit": ("qsgdinf", {"bits": 6, "bucket_size": 32}, "context", 77, "float32"),
    "context-empty": ("qsgd", {"bits": 3}, "context", 0, "float32"),
    "raw-float32": (None, {}, "fixed", 5, "float32"),
    "raw-float16": (None, {}, "fixed", 5, "float16"),
    "raw-bfloat16": (None, {}, "fixed", 5, "bfloat16"),
    "raw-float64": (None, {}, "fixed", 5, "float64"),
}
# Frames that hold frames; n components are sent in rows of 10. Low-rank frames are of matrices
# whose factors are computed exactly everywhere: every row is a multiple of one.
NESTED_CASES = {
    "sparse-one": (TopK(keep=0.0001), None, 400, "float32"),
    "sparse-gaps": (TopK(keep=0.1), None, 410, "bfloat16"),
    "sparse-dense": (Threshold(0.5), None, 330, "float64"),
    "sparse-stream": (RandomK(keep=0.2), None, 330, "float32"),
    "sparse-none": (Threshold(9.0), None, 20, "float32"),
    "sparse-empty": (TopK(keep=0.5), None, 0, "float32"),
    "sparse-nuqsgd": (TopK(keep=0.3), NUQSGD(bucket_size=20), 400, "float32"),
    "low-rank": (PowerSGD(rank=1), None, 60, "rank-one"),
    "low-rank-qsgdinf": (PowerSGD(rank=1), QSGDinf(bits=8), 60, "rank-one"),
}


def vector(n: int, dtype: str) -> torch.Tensor:
    """Component i is ((37 i + 11) mod 101 - 50) / 16, exact in every dtype; or ones of rank one."""
    if dtype == "rank-one":
        return torch.outer(torch.tensor([0.0] * (n // 10 - 1) + [1.0]), torch.arange(10.0)).view(-1)
    return torch.tensor([((37 * i + 11) % 101 - 50) / 16 for i in range(n)]).to(
        getattr(torch, dtype)
    )


def frame_of(case: str) -> torch.Tensor:
    """The frame of a case, made anew."""
    if case in NESTED_CASES:
        method, values, n, dtype = NESTED_CASES[case]
        return Compressor(method, values=values).compress(
            vector(n, dtype).view(-1, 10), key="golden.weight", step=3, rank=1, seed=5
        )
    method, settings, codec, n, dtype = CASES[case]
    quantizer = QUANTIZERS.get(method)(**settings) if method else None
    return Compressor(quantizer, codec).compress(
        vector(n, dtype), key="golden.weight", step=3, rank=1, seed=5
    )


def patched(frame: bytes, position: int, value: bytes) -> bytes:
    """The frame with some bytes replaced and the checksum made right again."""
    changed = bytearray(frame)
    changed[position : position + len(value)] = value
    checksum = zlib.crc32(bytes(changed[64:]), zlib.crc32(bytes(changed[:60])))
    changed[60:64] = struct.pack("<I", checksum)
    return bytes(changed)


def bad_frames(good: dict[str, bytes]) -> dict[str, tuple[bytes, int]]:
    """Frames that must be refused, and at which byte."""
    quantized, raw, table = good["nuqsgd-4bit"], good["raw-float32"], good["nuqsgd-table"]
    nan = struct.pack("<f", float("nan"))
    coded = good["nuqsgd-raw-codec"]
    short_table = patched(patched(table, 48, struct.pack("<I", 4)), 64, struct.pack("<f", 1.0))
    short_table = short_table[:68] + short_table[64 + 28 :]
    return {
        "nothing": (b"", 0),
        "half a header": (quantized[:32], 0),
        "magic": (patched(quantized, 0, b"SGRE"), 0),
        "version": (patched(quantized, 4, b"\x01"), 4),
        "header size": (patched(quantized, 5, b"\x48"), 5),
        "method": (patched(quantized, 6, b"\x09"), 6),
        "code_id": (patched(quantized, 7, b"\xee"), 7),
        "grid": (patched(quantized, 8, b"\x06"), 8),
        "bits too few": (patched(quantized, 9, b"\x01"), 9),
        "bits too many": (patched(quantized, 9, b"\x09"), 9),
        "norm": (patched(quantized, 10, b"\x08"), 10),
        "reserved flag": (patched(quantized, 11, b"\x02"), 11),
        "flag without NaN": (patched(quantized, 11, b"\x01"), 11),
        "NaN without flag": (patched(quantized, 64, nan), 11),
        "bucket size 0": (patched(quantized, 12, bytes(4)), 12),
        "bucket size huge": (patched(quantized, 12, b"\xff\xff\xff\xff"), 12),
        "n huge": (patched(quantized, 16, struct.pack("<Q", 2**40 + 1)), 16),
        "n other": (patched(quantized, 16, struct.pack("<Q", 641)), 32),
        "n changes payload": (patched(quantized, 16, struct.pack("<Q", 606)), 40),
        "scales_bytes": (patched(quantized, 32, struct.pack("<Q", 44)), 32),
        "payload_bytes": (patched(quantized, 40, struct.pack("<Q", 2**63)), 40),
        "table without grid 3": (patched(quantized, 48, struct.pack("<I", 4)), 48),
        "table without zero cut": (patched(table, 8, b"\x04"), 48),
        "dtype of quantized": (patched(quantized, 52, b"\x01"), 52),
        "transform": (patched(quantized, 53, b"\x03"), 53),
        "dither of levels": (patched(quantized, 53, b"\x01"), 53),
        "dither without integers": (patched(good["dithered-4bit"], 8, b"\x01"), 53),
        "integers taken for levels": (patched(good["dithered-4bit"], 53, b"\x00"), 53),
        "integers without dither": (patched(quantized, 8, b"\x05"), 53),
        "reserved": (patched(quantized, 59, b"\x01"), 54),
        "checksum": (quantized[:60] + b"\x00\x00\x00\x00" + quantized[64:], 60),
        "payload altered": (quantized[:-1] + bytes([quantized[-1] ^ 1]), 60),
        "cut": (quantized[:-1], 40),
        "longer": (quantized + b"\x00", len(quantized)),
        "negative scale": (patched(quantized, 68, struct.pack("<f", -1.0)), 68),
        "infinite scale": (patched(quantized, 72, struct.pack("<f", float("inf"))), 72),
        "table empty": (patched(table, 48, bytes(4)), 48),
        "table too long": (patched(table, 48, struct.pack("<I", 32)), 48),
        "table not whole": (patched(table, 48, struct.pack("<I", 27)), 48),
        "table descends": (patched(table, 64, struct.pack("<f", 0.99)), 64),
        "table starts at 0": (patched(table, 64, bytes(4)), 64),
        "table ends below 1": (patched(table, 88, struct.pack("<f", 0.99)), 64),
        "level above the table": (patched(short_table, 60, b""), 72),
        "bits behind the end": (patched(table, len(table) - 1, b"\xff"), len(table) - 1),
        "byte above bits": (patched(coded, len(coded) - 2, b"\x20"), len(coded) - 2),
        "raw with bits": (patched(raw, 9, b"\x04"), 9),
        "raw with key": (patched(raw, 24, b"\x01"), 24),
        "raw dtype": (patched(raw, 52, b"\x05"), 52),
        "raw length": (patched(raw, 16, b"\x06"), 40),
        **bad_rotations(good),
        **bad_payloads(good),
        **bad_nested_frames(good),
    }


def bad_rotations(good: dict[str, bytes]) -> dict[str, tuple[bytes, int]]:
    """Frames of rotated blocks that must be refused."""
    rotated, narrow = good["eden-4bit"], good["eden-1bit"]
    return {
        "rotation of another grid": (patched(good["nuqsgd-4bit"], 53, b"\x02"), 53),
        "rotation of 5 bits": (patched(rotated, 9, b"\x05"), 9),
        "rotation in other buckets": (patched(rotated, 12, b"\x00\x01"), 12),
        "rotation of another length": (patched(rotated, 16, struct.pack("<Q", 1025)), 32),
        "rotation cut short": (patched(narrow[:-1], 40, struct.pack("<Q", 63)), 40),
        "negative factor": (patched(narrow, 68, struct.pack("<f", -1.0)), 68),
    }


def bad_payloads(good: dict[str, bytes]) -> dict[str, tuple[bytes, int]]:
    """Frames of coded symbols that must be refused."""
    return bad_elias_frames(good) | bad_huffman_frames(good) | bad_entropy_frames(good)


def bad_elias_frames(good: dict[str, bytes]) -> dict[str, tuple[bytes, int]]:
    """Frames whose Elias payload must be refused."""
    elias = good["elias-omega"]
    last = len(elias) - 1
    return {
        "elias too short": (patched(good["elias-gamma"], 16, struct.pack("<Q", 2**36)), 32),
        "elias other end": (patched(elias, 16, struct.pack("<Q", 129)), last),
        "elias bits behind": (patched(elias, last, bytes([elias[last] | 1])), last),
    }


def bad_huffman_frames(good: dict[str, bytes]) -> dict[str, tuple[bytes, int]]:
    """Frames whose Huffman payload must be refused."""
    huffman, alone = good["huffman"], good["huffman-alone"]
    lengths = 64 + 4 * 10  # behind ten scales
    sizes = lengths + 8
    longer = bytes([huffman[sizes] + 1])
    return {
        "huffman too short": (patched(huffman, 40, struct.pack("<Q", 90)), 40),
        "huffman length 13": (patched(huffman, lengths, b"\x0d"), lengths),
        "huffman code not full": (patched(huffman, lengths, b"\x00"), lengths),
        "huffman stream too long": (patched(huffman, sizes, b"\xff"), sizes),
        "huffman streams elsewhere": (patched(huffman, sizes, longer), sizes),
        "huffman alone with a 1": (patched(alone, len(alone) - 1, b"\x80"), len(alone) - 1),
    }


def bad_entropy_frames(good: dict[str, bytes]) -> dict[str, tuple[bytes, int]]:
    """The same of the entropy codecs."""
    rans, context = good["rans-4bit"], good["context-4bit"]
    rans_at, context_at = 64 + 4 * 11, 64 + 4 * 18  # of the payloads
    return {
        "rans frequencies": (patched(rans, rans_at, b"\xff\xff"), rans_at),
        "rans size": (patched(rans, rans_at + 32, b"\xff\x00\x00\x00"), rans_at + 32),
        "rans state too low": (patched(rans, rans_at + 36, bytes(4)), rans_at + 36),
        "rans state too high": (patched(rans, rans_at + 39, b"\x80"), rans_at + 36),
        "rans word": (patched(rans, len(rans) - 1, bytes([rans[-1] ^ 1])), rans_at + 36),
        "rans least length": (patched(rans, 40, struct.pack("<Q", 32 + 4 + 511)), 40),
        "rans most length": (patched(rans, 40, struct.pack("<Q", 36 + 512 + 1401)), 40),
        "context frequencies": (patched(context, context_at + 32, b"\xff\xff"), context_at),
        "context size": (patched(context, context_at + 512, b"\xff\xff"), context_at + 512),
        "context state": (patched(context, context_at + 519, b"\x80"), context_at + 516),
        "context word": (
            patched(context, len(context) - 1, bytes([context[-1] ^ 1])),
            context_at + 516,
        ),
        "context least length": (patched(context, 40, struct.pack("<Q", 516 + 11)), 40),
        "context most length": (patched(context, 40, struct.pack("<Q", 516 + 12 + 2201)), 40),
    }


def inside(frame: bytes, start: int, position: int, value: bytes) -> bytes:
    """The frame with a frame inside it patched, that one's checksum made right too."""
    inner = patched(frame[start:], position, value)
    return patched(frame[:start] + inner, 60, b"")


def with_inside(frame: bytes, start: int, inner: bytes) -> bytes:
    """The frame with its last frame inside, which begins at ``start``, replaced."""
    return patched(frame[:start] + inner, 40, struct.pack("<Q", len(inner)))


def bad_nested_frames(good: dict[str, bytes]) -> dict[str, tuple[bytes, int]]:
    """Sparse and low-rank frames that must be refused, and at which byte."""
    one, gaps = good["sparse-one"], good["sparse-gaps"]
    stream, matrix = good["sparse-stream"], good["low-rank"]
    gaps_end = 64 + struct.unpack_from("<Q", gaps, 32)[0]
    place = int(vector(400, "float32").abs().argmax())
    nan = struct.pack("<f", float("nan"))
    return {
        "sparse with a norm": (patched(gaps, 10, b"\x01"), 10),
        "sparse with a dtype": (patched(gaps, 52, b"\x01"), 52),
        "coding of places": (patched(gaps, 7, b"\x03"), 7),
        "parameter of a stream": (patched(stream, 9, b"\x01"), 9),
        "parameter of gaps": (patched(gaps, 9, b"\x20"), 9),
        "key of gaps": (patched(gaps, 24, b"\x01"), 24),
        "sparse n huge": (patched(gaps, 16, struct.pack("<Q", 2**32)), 16),
        "bytes of a stream": (patched(patched(one, 9, b"\x00"), 7, b"\x02"), 32),
        "inner frame too short": (patched(gaps, 40, struct.pack("<Q", 63)), 40),
        "no room for low bits": (patched(gaps, 9, b"\x1f"), 64),
        "gap count": (patched(gaps, 64, b"\xff"), 64),
        "gaps beyond": (patched(gaps, 16, struct.pack("<Q", 200)), 64),
        "last gap beyond": (patched(one, 16, struct.pack("<Q", place)), 64),
        "gaps of nothing": (with_inside(one, 66, good["sparse-none"][64:]), 64),
        "bits behind the gaps": (patched(gaps, gaps_end - 1, b"\xff"), gaps_end - 1),
        "more kept than there are": (patched(stream, 16, bytes(8)), 16),
        "sparse flag": (patched(gaps, 11, b"\x01"), 11),
        "sparse flag missing": (inside(gaps, gaps_end, 11, b"\x01"), 11),
        "low-rank flag missing": (inside(inside(matrix, 152, 11, b"\x01"), 152, 64, nan), 11),
        "frame inside a frame inside": (with_inside(gaps, gaps_end, one), gaps_end + 6),
        "inner magic": (inside(gaps, gaps_end, 0, b"X"), gaps_end),
        "columns 0": (patched(matrix, 12, bytes(4)), 12),
        "no whole rows": (patched(matrix, 16, struct.pack("<Q", 61)), 16),
        "other rows": (patched(matrix, 16, struct.pack("<Q", 70)), 16),
        "low-rank with a key": (patched(matrix, 24, b"\x01"), 24),
        "left frame too short": (patched(matrix, 32, struct.pack("<Q", 3)), 32),
    }


def main() -> None:
    """Write good.json and bad.json."""
    frames = {case: bytes(frame_of(case).numpy()) for case in (*CASES, *NESTED_CASES)}
    good = {
        case: {
            "frame": base64.b64encode(frame).decode(),
            "values": Compressor(None)
            .decompress(torch.frombuffer(bytearray(frame), dtype=torch.uint8))
            .tolist(),
        }
        for case, frame in frames.items()
    }
    bad = {
        name: {"frame": base64.b64encode(frame).decode(), "position": position}
        for name, (frame, position) in bad_frames(frames).items()
    }
    for name, content in (("good", good), ("bad", bad)):
        (FOLDER / f"{name}.json").write_text(json.dumps(content, indent=0) + "\n")


if __name__ == "__main__":
    main()
