"""Method and codec together: a vector to one frame and back."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Sequence
from typing import TypeAlias, final

import torch

from slimgrad.comm import frame as wire
from slimgrad.comm.codecs import CODECS, Codec
from slimgrad.comm.decoding import add_values_, sum_values_, values_of
from slimgrad.comm.header import METHOD_LOW_RANK, METHOD_SPARSE
from slimgrad.comm.lowrank.base import LowRank
from slimgrad.comm.places import encode_places
from slimgrad.comm.quantizers.adaptive import AdaptiveQuantizer
from slimgrad.comm.quantizers.base import Quantizer
from slimgrad.comm.serial import copy_
from slimgrad.comm.sparsifiers.base import Sparsifier, kept_count
from slimgrad.core.errors import ConfigError, FrameError
from slimgrad.core.rng import stream_key

Method: TypeAlias = Quantizer | Sparsifier | LowRank
# A frame of a few bytes can stand for many zeros: who does not say how many to expect gets no more.
DEFAULT_LIMIT = 2**25


@final
class Compressor:
    """Turns vectors into frames of bytes and back.

    frame = codec(method(v)); without a method the frame holds the exact values. What a sparsifier
    keeps, and the factors of a low-rank method, are sent as float32 or quantized in turn.

    Guarantee: what the method promises; the codec and the frame lose nothing. A component that
    is not finite is seen at the other end: a quantizer makes its whole bucket NaN, a sparsifier
    keeps it or sends NaN, a low-rank method makes the whole matrix NaN.

    Args:
        method: for example ``NUQSGD(bits=4)``, ``TopK(keep=0.01)`` or ``PowerSGD(rank=4)``, or
            None for exact values.
        codec: name of a registered codec, or a codec; unused without a quantizer.
        values: quantizer of the numbers that a sparsifier or a low-rank method sends, or None.

    Attributes:
        method, codec, values: as given.
        quantizer: the method if it is a quantizer, else None.
        starts: what a low-rank method begins with, by the key of the tensor.

    Raises:
        ConfigError: unknown codec, or something that is not a method or a quantizer.

    >>> from slimgrad.comm.quantizers import NUQSGD
    >>> compressor = Compressor(NUQSGD(bits=4, bucket_size=512))
    >>> frame = compressor.compress(torch.ones(1024), key="conv1.weight", step=0)
    >>> frame.numel()
    584
    >>> compressor.decompress(frame).shape
    torch.Size([1024])
    """

    def __init__(
        self,
        method: Method | None,
        codec: str | Codec = "fixed",
        values: Quantizer | None = None,
    ) -> None:
        if method is not None and not isinstance(method, Quantizer | Sparsifier | LowRank):
            raise ConfigError(
                f"{method!r} is not a quantizer, sparsifier or low-rank method; give an instance "
                "such as NUQSGD(bits=4), or None to send exact values"
            )
        if values is not None and not isinstance(values, Quantizer):
            raise ConfigError(f"values={values!r} is not a quantizer; give one, or None")
        if values is not None and not isinstance(method, Sparsifier | LowRank):
            raise ConfigError(
                f"values={values!r} is what a sparsifier or low-rank method sends, and "
                f"{method!r} is neither; leave it out"
            )
        self.method = method
        self.quantizer = method if isinstance(method, Quantizer) else None
        self.values = values
        self.codec = codec if isinstance(codec, Codec) else CODECS.get(codec)()
        self.starts: dict[str, torch.Tensor] = {}
        self._inside = Compressor(values, self.codec) if self.quantizer is None and method else self

    def __repr__(self) -> str:
        values = "" if self.values is None else f", values={self.values!r}"
        return f"Compressor({self.method!r}, codec={self.codec.name!r}{values})"

    def with_strength(self, strength: float) -> Compressor:
        """The same with another number of bits, share kept, threshold, or rank.

        What a low-rank method begins with is shared.

        Raises:
            ConfigError: a strength the method does not take, or no method.

        >>> from slimgrad.comm.sparsifiers import TopK
        >>> Compressor(TopK(keep=0.01)).with_strength(0.25)
        Compressor(TopK(keep=0.25), codec='fixed')
        """
        if self.method is None:
            raise ConfigError("exact values have no strength; give a method, or no schedule")
        if isinstance(self.method, AdaptiveQuantizer):
            raise ConfigError(
                f"{self.method!r} has levels chosen for its bits; give another quantizer to "
                "change bits by the step"
            )
        setting = getattr(self.method, "strength", "bits")
        assert dataclasses.is_dataclass(self.method)
        if setting not in (field.name for field in dataclasses.fields(self.method) if field.init):
            raise ConfigError(f"{self.method!r} has no strength to change by the step")
        method = dataclasses.replace(self.method, **{setting: strength})
        changed = Compressor(method, self.codec, self.values)
        changed.starts = self.starts
        return changed

    def with_own_state(self) -> Compressor:
        """The same, without what a low-rank method begins with."""
        return Compressor(self.method, self.codec, self.values)

    def error_bound(self, n: int) -> float:
        """Bound on E||Q(v) - v||^2 / ||v||^2 over all v of n components; inf if none is known.

        A variance for an unbiased method, else a contraction. With b of the method and w of the
        quantizer of its values: (1 + b) (1 + w) - 1 if unbiased; a sparsifier that keeps values as
        they are loses a part b of the square and rounds the rest, max(w, b + w (1 - b)).
        """
        if self.method is None:
            return 0.0
        bound = _bound(self.method, n)
        if self.values is None:
            return bound
        kept = n
        if isinstance(self.method, Sparsifier) and self.method.fixed_count:
            kept = kept_count(n, getattr(self.method, self.method.strength))
        within = _bound(self.values, kept)
        if not isinstance(self.method, Sparsifier):
            return math.inf
        if self.method.unbiased:
            return (1 + bound) * (1 + within) - 1
        return max(within, bound + within * (1 - bound))

    @property
    def fixed_length(self) -> bool:
        """Whether the length of a frame follows from the shape of the tensor alone."""
        if self.method is None:
            return True
        if isinstance(self.method, Sparsifier):
            return self.method.fixed_count and self._inside.fixed_length
        if isinstance(self.method, LowRank):
            return self.method.fixed_rank and self._inside.fixed_length
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
            v: any shape; float16, bfloat16, float32 or float64, on the CPU. Methods work in
                float32: a float64 beyond its range counts as infinite. Low-rank methods see the
                first dimension as rows and all others as columns.
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
        _check_input(v, key)
        flat = v.detach().reshape(-1).contiguous()
        if self.method is None:
            return wire.encode_raw(flat)
        vector = flat
        if flat.dtype != torch.float32:
            vector = copy_(torch.empty(flat.numel(), dtype=torch.float32), flat, serial=serial)
        stream = stream_key(seed, step, key, rank)

        def inside(values: torch.Tensor, part: str) -> torch.Tensor:
            return self._inside.compress(
                values, key=f"{key}/{part}", step=step, rank=rank, seed=seed, serial=serial
            )

        if isinstance(self.method, Sparsifier):
            kept = self.method.select(vector, stream)
            return wire.encode_sparse(
                kept.n, kept.key or 0, encode_places(kept), inside(kept.values, "values")
            )
        if isinstance(self.method, LowRank):
            shape = self.method.shape(tuple(v.shape))
            if shape is None:
                return wire.encode_raw(flat)
            factors = self.method.factor(vector.view(shape), stream, self.starts.get(key))
            if factors.start is not None:
                self.starts[key] = factors.start
            left, right = inside(factors.left, "left"), inside(factors.right, "right")
            return wire.encode_low_rank(vector.numel(), shape[1], left, right)
        quantizer = self.method.for_tensor(key)
        quantized = quantizer.quantize(vector, stream, serial=serial)
        codec = self.codec.for_vector(quantized)
        return wire.encode_quantized(quantized, codec.encode(quantized), codec.code_id)

    def decompress(
        self, frame: torch.Tensor, *, limit: int = DEFAULT_LIMIT, serial: bool = False
    ) -> torch.Tensor:
        """The vector a frame holds, flat float32. Any valid frame decodes, whoever made it.

        Args:
            frame: flat uint8.
            limit: most components of a sparse or low-rank frame, which a few bytes can claim.
            serial: keep the work on the calling thread.

        Raises:
            FrameError: the bytes are not a valid frame, or it holds more than ``limit``.
            ConfigError: ``limit`` is no number of components.
        """
        if not isinstance(limit, int) or isinstance(limit, bool) or limit < 0:
            raise ConfigError(f"limit must be an integer >= 0, got {limit!r}")
        decoded = wire.decode(frame)
        header = decoded.header
        if header.method in (METHOD_SPARSE, METHOD_LOW_RANK) and header.n > limit:
            raise FrameError(
                f"the frame stands for {header.n} components, at most {limit} are taken; "
                "pass limit if they are expected",
                16,
            )
        return values_of(decoded, serial=serial)

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


def _bound(method: Method, n: int) -> float:
    if method.unbiased or isinstance(method, Quantizer):
        return method.variance_bound(n)
    return _contraction(method, n)


def _contraction(method: Method, n: int) -> float:
    bound = getattr(method, "contraction_bound", None)
    return math.inf if bound is None else bound(n)


def _check_input(v: object, key: object) -> None:
    if not isinstance(key, str):
        raise ConfigError(f"key must be the name of the tensor, a text, got {key!r}")
    if not isinstance(v, torch.Tensor):
        raise ConfigError(f"{key!r} is a {type(v).__name__}; frames are made of tensors")
    if v.dtype not in wire.DTYPE_IDS or v.device.type != "cpu" or v.layout != torch.strided:
        form = "" if v.layout == torch.strided else f" {v.layout}"
        raise ConfigError(
            f"tensor {key!r} is{form} {v.dtype} on {v.device}; frames are made of dense float32, "
            "float16, bfloat16 or float64 tensors on the CPU"
        )


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
