"""Shows that a killed and resumed run ends with the very bits of an undisturbed one.

Everything after ``--`` goes to ``slimgrad train``. For example, one epoch of ResNet-20 on class
folders with both halves of the library over two workers, killed at step 150:

    python tools/resume_check.py --kill-at 150 -- --data folders --data-dir CIFAR10 \
        --model resnet20 --epochs 1 --workers 2 --estimator topone \
        --schedule every_nth_layer:n=4,start=2 --quantizer nuqsgd --bits 4
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

TRAIN = [sys.executable, "-m", "slimgrad", "train"]
Record = dict[str, Any]


def records(out: Path) -> list[Record]:
    try:
        lines = (out / "records.jsonl").read_text().split("\n")[:-1]
    except FileNotFoundError:
        return []
    return [json.loads(line) for line in lines]


def result(out: Path) -> Record:
    return next(r for r in reversed(records(out)) if r["kind"] == "result")


def run(options: list[str], out: Path) -> Record:
    subprocess.run([*TRAIN, *options, "--out", str(out)], check=True)
    return result(out)


def kill_at(step: int, options: list[str], out: Path) -> int:
    """Start the run, kill its launcher when ``step`` is recorded; the last step recorded."""
    with subprocess.Popen([*TRAIN, *options, "--out", str(out)]) as process:
        while process.poll() is None:
            steps = [r["step"] for r in records(out) if r["kind"] == "progress"]
            if steps and steps[-1] >= step:
                process.kill()
                break
            time.sleep(0.05)
        else:
            sys.exit(f"the run ended before step {step}; choose a smaller --kill-at")
    time.sleep(5.0)  # its workers notice at their next step
    return max(r["step"] for r in records(out) if r["kind"] == "progress")


def main() -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n")[0])
    parser.add_argument("--kill-at", type=int, required=True, metavar="STEP")
    parser.add_argument("--checkpoint-every", type=int, default=40, metavar="STEPS")
    parser.add_argument("train", nargs=argparse.REMAINDER, help="-- and options of slimgrad train")
    asked = parser.parse_args()
    options = [o for o in asked.train if o != "--"]
    options += ["--checkpoint-every", str(asked.checkpoint_every)]
    with tempfile.TemporaryDirectory() as folder:
        whole = run(options, Path(folder) / "whole")
        cut = Path(folder) / "cut"
        killed = kill_at(asked.kill_at, options, cut)
        resumed = run([*options, "--resume"], cut)
    same = whole["parameters_sha256"] == resumed["parameters_sha256"]
    print(f"undisturbed run:           {whole['parameters_sha256']}")
    print(f"killed at step {killed:>5}, resumed: {resumed['parameters_sha256']}")
    print("the parameters are the same to the last bit" if same else "the parameters DIFFER")
    return 0 if same else 1


if __name__ == "__main__":
    sys.exit(main())
