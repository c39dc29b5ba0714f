#!/usr/bin/env bash
# Compiles the C++ kernels straight into src/slimgrad/kernels, for work on them without a reinstall.
# Use with PYTHONPATH=src. PYTHON names an interpreter that has nanobind and cmake installed.
set -euo pipefail
cd "$(dirname "$0")/.."
PYTHON=${PYTHON:-.venv/bin/python}
PYTHON=$(command -v "$PYTHON")
cmake_dir=$("$PYTHON" -m nanobind --cmake_dir)
cmake -S . -B build/dev -DCMAKE_BUILD_TYPE=Release -Dnanobind_DIR="$cmake_dir" \
  -DPython_EXECUTABLE="$PYTHON" -DSKBUILD_SABI_COMPONENT= >/dev/null
cmake --build build/dev -j2 -- --no-print-directory
cp build/dev/_native*.so src/slimgrad/kernels/
