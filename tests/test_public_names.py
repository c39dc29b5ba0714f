"""``import slimgrad`` is light, and every public name exists."""

from __future__ import annotations

import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

import slimgrad


def test_every_name_of_all_exists_and_is_listed():
    assert len(slimgrad.__all__) == len(set(slimgrad.__all__)) <= 30
    for name in slimgrad.__all__:
        assert getattr(slimgrad, name) is not None
        assert name in dir(slimgrad)
    homeless = set(slimgrad.__all__) - set(slimgrad._HOMES)
    assert homeless == {"__version__", "theory"}, "theory is a module, all else has a home module"


def test_subpackages_are_attributes():
    assert slimgrad.approx.approximate is slimgrad.approximate
    assert slimgrad.theory.__name__ == "slimgrad.theory"


def test_unknown_name():
    with pytest.raises(AttributeError, match="module 'slimgrad' has no attribute 'aproximate'"):
        slimgrad.aproximate  # noqa: B018


def test_version_is_the_project_file_s():
    project = Path(__file__).parents[1] / "pyproject.toml"
    version = tomllib.loads(project.read_text())["project"]["version"]
    assert slimgrad.__version__ == version


def test_import_prints_nothing_starts_no_thread_and_loads_no_torch():
    code = (
        "import sys, threading, slimgrad\n"
        "assert threading.active_count() == 1\n"
        "assert 'torch' not in sys.modules\n"
        "import slimgrad.approx\n"
        "assert threading.active_count() == 1\n"
        "assert not {'pydantic', 'rich', 'matplotlib', 'scipy'} & set(sys.modules)\n"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")
