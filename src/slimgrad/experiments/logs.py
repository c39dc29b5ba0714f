"""Where the output of worker processes goes."""

from __future__ import annotations

from pathlib import Path

from torch.distributed.elastic.multiprocessing.api import LogsDest, LogsSpecs


class WorkerLogs(LogsSpecs):
    """Files ``rankN.stdout.log``, ``rankN.stderr.log`` and ``rankN.error.json`` in one folder."""

    def __init__(self, folder: Path) -> None:
        super().__init__(str(folder))
        self._folder = folder

    @property
    def root_log_dir(self) -> str:
        """The folder."""
        return str(self._folder)

    def reify(self, envs: dict[int, dict[str, str]]) -> LogsDest:
        """The files of each worker; what an earlier launch recorded as its error is removed."""

        def files(ending: str) -> dict[int, str]:
            return {rank: str(self._folder / f"rank{rank}.{ending}") for rank in envs}

        errors = files("error.json")
        for rank, environment in envs.items():
            Path(errors[rank]).unlink(missing_ok=True)
            environment["TORCHELASTIC_ERROR_FILE"] = errors[rank]
        return LogsDest(
            stdouts=files("stdout.log"), stderrs=files("stderr.log"), error_files=errors
        )
