"""Fails when a source file or function outgrows the house limits.

Median file <= 150 lines, 90th percentile <= 350, no file over 500, no Python function over 60.
"""

from __future__ import annotations

import ast
import statistics
import sys
from pathlib import Path

FILE_CAP, FUNCTION_CAP, MEDIAN_CAP, NINETIETH_CAP = 500, 60, 150, 350
ROOT = Path(__file__).resolve().parent.parent
FOLDERS = {"src": "*.py", "csrc": "*.[ch]*", "tests": "*.py", "benchmarks": "*.py", "tools": "*.py"}


def long_functions(path: Path) -> list[str]:
    found = []
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            body_start = node.body[0]
            docstring = ast.get_docstring(node, clean=False)
            documented = docstring.count("\n") + 1 if docstring else 0
            assert node.end_lineno is not None
            length = node.end_lineno - node.lineno + 1 - documented
            if length > FUNCTION_CAP:
                place = f"{path.relative_to(ROOT)}:{body_start.lineno}"
                found.append(f"{place} {node.name} has {length} lines, at most {FUNCTION_CAP}")
    return found


def main() -> int:
    files = [p for folder, glob in FOLDERS.items() for p in (ROOT / folder).rglob(glob)]
    lengths = {p: p.read_text().count("\n") for p in files if p.read_text().strip()}
    problems = [
        f"{p.relative_to(ROOT)} has {n} lines, at most {FILE_CAP}"
        for p, n in lengths.items()
        if n > FILE_CAP
    ]
    for path in files:
        if path.suffix == ".py":
            problems += long_functions(path)
    ordered = sorted(lengths.values())
    median = statistics.median(ordered)
    ninetieth = ordered[int(0.9 * (len(ordered) - 1))]
    if median > MEDIAN_CAP:
        problems.append(f"the median file has {median} lines, at most {MEDIAN_CAP}")
    if ninetieth > NINETIETH_CAP:
        problems.append(f"the 90th percentile file has {ninetieth} lines, at most {NINETIETH_CAP}")
    for problem in problems:
        print(f"size: {problem}", file=sys.stderr)
    print(f"size: {len(files)} files, median {median:.0f}, 90th percentile {ninetieth} lines")
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main())
