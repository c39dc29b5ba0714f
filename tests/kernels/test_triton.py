"""Runs the checks of the Triton kernels: their bytes in the interpreter, and that they compile.

Triton decides when it is imported whether functions are interpreted, so each needs a process.
"""

from __future__ import annotations

import importlib.util
import os
import subprocess
import sys
from pathlib import Path

import pytest


@pytest.mark.skipif(
    importlib.util.find_spec("triton") is None, reason="the optional package triton is missing"
)
@pytest.mark.parametrize(
    ("checks", "interpret"), [("triton_checks.py", "1"), ("triton_compile_checks.py", "0")]
)
def test_triton_kernels(checks, interpret, tmp_path):
    path = str(Path(__file__).with_name(checks))
    command = [sys.executable, "-m", "pytest", "-q", "-x", "-p", "no:cacheprovider", path]
    environment = {
        **os.environ,
        "TRITON_INTERPRET": interpret,
        "TRITON_CACHE_DIR": str(tmp_path),
        "PYTHONPATH": os.pathsep.join(sys.path),
    }
    done = subprocess.run(command, capture_output=True, text=True, env=environment, timeout=110)
    assert done.returncode == 0, done.stdout[-4000:] + done.stderr[-1000:]
