"""Quantizer and codec together: a vector to one frame and back."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import final

import torch

from slimgrad.comm import frame as wire
from slimgrad.comm.codecs import CODECS, Codec
from slimgrad.comm.decoding import add_values_, sum_values_, values_of
from slimgrad.comm.quantizers.base import Quantizer
from slimgrad.comm.serial import copy_
from slimgrad.core.errors import ConfigError, FrameError
from slimgrad.core.rng import stream_key


@final
class Compressor:
    """Turns vectors into frames of bytes and back.

    frame = codec(quantizer(v)); without a quantizer the frame holds the exact values.

    Guarantee: what the quantizer promises; the codec and the frame lose nothing. A component that
    is not finite makes its whole bucket NaN, so that it is seen at the other end.

    Args:
        quantizer: for example ``NUQSGD(bits=4)``, or None for exact values.
        codec: name of a registered codec, or a codec; unused without a quantizer.

    Raises:
        ConfigError: unknown codec, or something that is not a quantizer.

    >>> from slimgrad.comm.quantizers import NUQSGD
    >>> compressor = Compressor(NUQSGD(bits=4, bucket_size=512))
    >>> frame = compressor.compress(torch.ones(1024), key="conv1.weight", step=0)
    >>> frame.numel()
    584
    >>> compressor.decompress(frame).shape
    torch.Size([1024])
    """

    def __init__(self, quantizer: Quantizer | None, codec: str | Codec = "fixed") -> None:
        if quantizer is not None and not isinstance(quantizer, Quantizer):
            raise ConfigError(
                f"{quantizer!r} is not a quantizer; give an instance such as NUQSGD(bits=4), "
                "or None to send exact values"
            )
        self.quantizer = quantizer
        self.codec = codec if isinstance(codec, Codec) else CODECS.get(codec)()

    def __repr__(self) -> str:
        return f"Compressor({self.quantizer!r}, codec={self.codec.name!r})"

    @property
    def fixed_length(self) -> bool:
        """Whether the length of a frame follows from the number of components alone."""
        if self.quantizer is None:
            return True
        least, most = self.codec.payload_bounds(512, 8)
        return least == most

    def compress(
        self,
        v: torch.Tensor,
        *,
        key: str,
        step: int,
        rank: int = 0,
        seed: int = 0,
        serial: bool = False,
    ) -> torch.Tensor:
        """One frame that holds ``v``.

        Args:
            v: any shape; float16, bfloat16, float32 or float64, on the CPU. Quantizers work in
                float32: a float64 beyond its range counts as infinite.
            key: name of the tensor; with seed, step and rank it names the random stream.
            step: optimizer step, >= 0.
            rank: rank that sends; two ranks never share a stream.
            seed: experiment seed.
            serial: keep the work on the calling thread.

        Returns:
            The frame, flat uint8.

        Raises:
            ConfigError: a dtype or device that cannot be compressed.
        """
        if v.dtype not in wire.DTYPE_IDS or v.device.type != "cpu":
            raise ConfigError(
                f"tensor {key!r} is {v.dtype} on {v.device}; frames are made of float32, float16, "
                "bfloat16 or float64 tensors on the CPU"
            )
        flat = v.detach().reshape(-1).contiguous()
        if self.quantizer is None:
            return wire.encode_raw(flat)
        stream = stream_key(seed, step, key, rank)
        vector = flat
        if flat.dtype != torch.float32:
            vector = copy_(torch.empty(flat.numel(), dtype=torch.float32), flat, serial=serial)
        quantizer = self.quantizer.for_tensor(key)
        quantized = quantizer.quantize(vector, stream, serial=serial)
        return wire.encode_quantized(quantized, self.codec.encode(quantized), self.codec.code_id)

    def decompress(self, frame: torch.Tensor, *, serial: bool = False) -> torch.Tensor:
        """The vector a frame holds, flat float32. Any valid frame decodes, whoever made it.

        Raises:
            FrameError: the bytes are not a valid frame.
        """
        return values_of(wire.decode(frame), serial=serial)

    def decompress_add_(
        self, frame: torch.Tensor, out: torch.Tensor, alpha: float = 1.0, *, serial: bool = False
    ) -> torch.Tensor:
        """Add alpha times the vector a frame holds to ``out``, in place.

        Args:
            frame: flat uint8.
            out: flat contiguous float32 or float64 with as many components as the frame.
            alpha: factor, finite.
            serial: keep the work on the calling thread.

        Raises:
            ConfigError: ``out`` or ``alpha`` is not as above.
            FrameError: the bytes are not a valid frame, or hold another number of components.
        """
        _check_sum(out, alpha)
        decoded = wire.decode(frame)
        header = decoded.header
        if header.n != out.numel():
            raise FrameError(f"the frame holds {header.n} components, not {out.numel()}", 16)
        return add_values_(decoded, out, alpha, serial=serial)

    def decompress_sum(
        self, frames: Sequence[torch.Tensor], *, serial: bool = False
    ) -> torch.Tensor:
        """The sum of the vectors that ``frames`` hold, flat float32; in the order given.

        Args:
            frames: at least one, flat uint8, of the same number of components.
            serial: keep the work on the calling thread.

        Raises:
            ConfigError: no frames.
            FrameError: the bytes are not valid frames, or of different lengths.
        """
        decoded = [wire.decode(frame) for frame in frames]
        if not decoded:
            raise ConfigError("a sum needs at least one frame, none are given")
        out = torch.empty(decoded[0].header.n, dtype=torch.float32)
        return _sum_into(decoded, out, serial=serial)

    def decompress_sum_(
        self, frames: Sequence[torch.Tensor], out: torch.Tensor, *, serial: bool = False
    ) -> torch.Tensor:
        """Set ``out`` to the sum of the vectors that ``frames`` hold, in the order given.

        Equal to the last bit to adding them to zeros one by one; quantized vectors are added up in
        one pass over a float32 ``out``. Where a frame is refused ``out`` may hold anything.

        Args:
            frames: flat uint8, of as many components as ``out``.
            out: flat contiguous float32 or float64; what was there is lost.
            serial: keep the work on the calling thread.

        Raises:
            ConfigError: ``out`` is not as above.
            FrameError: the bytes are not valid frames, or hold another number of components.
        """
        _check_sum(out, 1.0)
        return _sum_into([wire.decode(frame) for frame in frames], out, serial=serial)


def _sum_into(frames: list[wire.Frame], out: torch.Tensor, *, serial: bool) -> torch.Tensor:
    for number, frame in enumerate(frames, 1):
        if frame.header.n != out.numel():
            raise FrameError(
                f"frame {number} of {len(frames)} holds {frame.header.n} components, "
                f"not {out.numel()}",
                16,
            )
    return sum_values_(frames, out, serial=serial)


def _check_sum(out: torch.Tensor, alpha: float) -> None:
    right_kind = out.dtype in (torch.float32, torch.float64) and out.device.type == "cpu"
    if not right_kind or out.dim() != 1 or not out.is_contiguous() or out.requires_grad:
        raise ConfigError(
            "out must be flat, contiguous, float32 or float64, on the CPU and without grad, "
            f"got shape {tuple(out.shape)}, strides {out.stride()}, {out.dtype} on {out.device}, "
            f"requires_grad={out.requires_grad}"
        )
    if not math.isfinite(alpha):
        raise ConfigError(f"alpha must be finite, got {alpha!r}")
