"""A comparison: several methods, each with the same seeds."""

from __future__ import annotations

from slimgrad.experiments.config import CompareConfig, TrainConfig
from slimgrad.experiments.session import Outcome, run_session


def planned_runs(config: CompareConfig) -> list[TrainConfig]:
    """All runs in the order they are done: seed by seed, the first method changing each time.

    Turning the order spreads a machine's slow drift over the methods.

    >>> names = [{"name": "a"}, {"name": "b"}]
    >>> runs = planned_runs(CompareConfig(methods=names, seeds=[5, 6]))
    >>> [(run.method.name, run.seed) for run in runs]
    [('a', 5), ('b', 5), ('b', 6), ('a', 6)]
    """
    runs = []
    for turn, seed in enumerate(config.seeds):
        first = turn % len(config.methods)
        ordered = config.methods[first:] + config.methods[:first]
        runs += [config.run(method, seed) for method in ordered]
    return runs


def compare(config: CompareConfig) -> Outcome | None:
    """Train with every method and every seed in one launch; records are in ``config.out``.

    Runs with one seed start from the same parameters and see the same images in the same order,
    so differences between methods are differences of pairs.

    Args:
        config: the comparison.

    Returns:
        What was measured; None on ranks other than 0 of a launch that this process joined.

    Raises:
        ConfigError, DataError, CheckpointError: wrong input; nothing was written.
        WorkerError: a worker failed; the runs finished before are in the records.
    """
    return run_session("compare", config, planned_runs(config))
