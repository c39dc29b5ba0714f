"""The C++ sources compile where there is no x86, and need no more of a processor than is asked."""

from __future__ import annotations

import re
import shutil
import subprocess
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
SOURCES = sorted(
    path.stem for path in (ROOT / "csrc").glob("*.cpp") if not path.stem.startswith("bind")
)
COMPILER = shutil.which("c++") or shutil.which("g++") or shutil.which("clang++")


@pytest.mark.skipif(COMPILER is None, reason="there is no C++ compiler here")
@pytest.mark.parametrize("name", SOURCES)
def test_sources_compile_without_x86_instructions(name):
    assert COMPILER is not None
    # Without this macro x86 compilers take the paths of every other processor.
    flags = ["-std=gnu++17", "-fsyntax-only", "-U__SSE2__"]
    isa = ["-DSLIMGRAD_ISA=baseline", "-DSLIMGRAD_ISA_baseline=1"]
    command = [COMPILER, *flags, *isa, str(ROOT / f"csrc/{name}.cpp")]
    done = subprocess.run(command, capture_output=True, text=True, timeout=60)
    assert done.returncode == 0, done.stderr


@pytest.mark.parametrize("isa", ["avx2", "avx512"])
def test_every_feature_compiled_in_is_asked_for_at_run_time(isa):
    flags = re.search(rf"SLIMGRAD_FLAGS_{isa} (-m.*)\)", (ROOT / "CMakeLists.txt").read_text())
    assert flags is not None
    compiled = {f[2:] for f in flags[1].split() if not f.startswith("-mprefer")}
    asked = set(re.findall(r'cpu_supports\("(\w+)"\)', (ROOT / "csrc/dispatch.cpp").read_text()))
    assert compiled <= asked
