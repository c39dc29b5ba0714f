"""Every error and warning slimgrad raises on purpose."""

from __future__ import annotations


class SlimgradError(Exception):
    """Base of all errors raised by slimgrad."""


class ConfigError(SlimgradError, ValueError):
    """A setting is wrong: the text names the value, what is allowed, and what to do."""


class DataError(SlimgradError):
    """A data file is missing, incomplete or altered."""


class FrameError(SlimgradError, ValueError):
    """Bytes received from a peer are not a valid frame.

    Attributes:
        reason: what is wrong, without the place.
        position: offset in bytes from the start of the frame at which decoding stopped.
    """

    def __init__(self, reason: str, position: int) -> None:
        super().__init__(f"{reason} (at byte {position} of the frame)")
        self.reason = reason
        self.position = position


class ExchangeError(SlimgradError):
    """Ranks could not exchange gradients; the text says which rank and which part failed."""


class BackendError(SlimgradError):
    """A kernel backend that was asked for cannot be used here."""


class WorkerError(SlimgradError):
    """A training worker failed; the text says which rank and why."""


class CheckpointError(SlimgradError):
    """A checkpoint is missing, altered, or belongs to another configuration."""


class SlimgradWarning(UserWarning):
    """Base of all warnings raised by slimgrad."""


class NoEffectWarning(SlimgradWarning):
    """A call changed nothing, which is rarely what was meant."""


class FallbackWarning(SlimgradWarning):
    """A slower implementation is in use; said once per cause."""
