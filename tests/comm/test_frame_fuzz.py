"""Thousands of damaged frames: refused, or decoded to what the second decoder reads.

While a frame is read the process can hardly allocate, so that a frame that claims to be huge and
is believed fails the test. tools/fuzz_frames.py runs any number of them.
"""

import importlib.util
import random
import sys
from pathlib import Path

import pytest
import torch

from slimgrad.comm.compressor import Compressor
from slimgrad.core.errors import FrameError

FRAMES = 2000


def load_tool():
    path = Path(__file__).parents[2] / "tools" / "fuzz_frames.py"
    spec = importlib.util.spec_from_file_location("fuzz_frames", path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules["fuzz_frames"] = module  # dataclasses look their module up
    spec.loader.exec_module(module)
    return module


tool = load_tool()


def test_damaged_frames_are_refused_or_read_alike():
    outcome = tool.fuzz(FRAMES, seed=20240229)
    assert sorted(outcome.refused) == sorted(tool.originals())
    decoded = outcome.decoded.total()
    assert decoded + outcome.refused.total() == FRAMES
    assert FRAMES / 50 < decoded < FRAMES / 2


def test_every_original_decodes():
    for frame in tool.originals().values():
        assert tool.check(frame, Compressor(None).decompress)


def test_the_memory_limit_of_these_tests_works():
    with tool.little_memory(), pytest.raises(RuntimeError):
        torch.empty(4 * tool.MEMORY_BYTES, dtype=torch.uint8)


def raising(error):
    def decode(frame):
        raise error

    return decode


def test_a_decoder_that_misreads_is_found_out():
    good = tool.originals()["short buckets"]
    bad = good[:-1]
    with pytest.raises(tool.Misread, match=r"RuntimeError.* instead of a FrameError"):
        tool.check(bad, raising(RuntimeError("out of memory")))
    with pytest.raises(tool.Misread, match="refused what the second decoder reads"):
        tool.check(good, raising(FrameError("no", 0)))
    with pytest.raises(tool.Misread, match="decoded although"):
        tool.check(bad, lambda frame: torch.zeros(50))
    with pytest.raises(tool.Misread, match="other values"):
        tool.check(good, lambda frame: torch.zeros(50))


def test_damage_is_reproducible_and_not_always_sealed():
    frame = tool.originals()["fixed 4"]
    first = [tool.damaged(frame, random.Random(seed)) for seed in range(50)]
    assert first == [tool.damaged(frame, random.Random(seed)) for seed in range(50)]
    assert any(data != frame for data in first)
