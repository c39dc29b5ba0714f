"""One run: one method, one seed."""

from __future__ import annotations

from slimgrad.experiments.config import TrainConfig
from slimgrad.experiments.session import Outcome, run_session


def train(config: TrainConfig) -> Outcome | None:
    """Train a network as ``config`` says; records and the final state are in ``config.out``.

    Equal configurations give parameters equal to the last bit on the same machine, also when a
    run was stopped and resumed.

    Args:
        config: the run.

    Returns:
        What was measured; None on ranks other than 0 of a launch that this process joined.

    Raises:
        ConfigError, DataError, CheckpointError: wrong input; nothing was written.
        WorkerError: a worker failed; the last checkpoint is whole.
    """
    return run_session("train", config, [config])
