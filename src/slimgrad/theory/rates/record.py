"""What a convergence calculator answers."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Rate:
    """What a convergence theorem says about one setting.

    Attributes:
        theorem: the statement, and where it comes from.
        measure: the quantity that falls to ``target``.
        target: what was asked for.
        assumptions: what must hold, one sentence each.
        met: whether everything that the given numbers decide does hold.
        reason: what does not; empty when met.
        step_size: step that reaches ``target``; None when not met.
        steps: number of steps that reaches ``target``; None when not met.
        messages_per_step: quantized gradients sent in one step, by all ranks together.
        bits: bits sent until then, by all ranks together: steps x messages x bits of a message.
            None when not met, or when the size of a message was not given.
    """

    theorem: str
    measure: str
    target: float
    assumptions: tuple[str, ...]
    met: bool
    reason: str
    step_size: float | None
    steps: int | None
    messages_per_step: int
    bits: float | None


@dataclass(frozen=True)
class Question:
    """The part of an answer that is known before it is computed.

    Attributes: see ``Rate``; ``bits_per_message`` is None when unknown.
    """

    theorem: str
    measure: str
    target: float
    assumptions: tuple[str, ...]
    messages_per_step: int
    bits_per_message: float | None

    def not_met(self, reason: str) -> Rate:
        """The answer without numbers."""
        return self._rate(met=False, reason=reason, step_size=None, steps=None, bits=None)

    def met(self, steps: int, step_size: float) -> Rate:
        """The answer in numbers."""
        bits = None
        if self.bits_per_message is not None:
            bits = steps * self.messages_per_step * self.bits_per_message
        return self._rate(met=True, reason="", step_size=step_size, steps=steps, bits=bits)

    def _rate(self, **answer: object) -> Rate:
        return Rate(
            theorem=self.theorem,
            measure=self.measure,
            target=self.target,
            assumptions=self.assumptions,
            messages_per_step=self.messages_per_step,
            **answer,  # pyright: ignore[reportArgumentType]
        )
