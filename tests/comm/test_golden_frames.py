"""Frames written once: they must decode to the stored values, or be refused at the stored place."""

import base64
import importlib.util
import json
from pathlib import Path

import pytest
import slow_frame_decoder
import torch

from slimgrad.comm.compressor import Compressor
from slimgrad.core.errors import FrameError

FOLDER = Path(__file__).parent.parent / "golden"
GOOD = json.loads((FOLDER / "good.json").read_text())
BAD = json.loads((FOLDER / "bad.json").read_text())


def load_maker():
    spec = importlib.util.spec_from_file_location("make_frames", FOLDER / "make_frames.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def tensor_of(frame: bytes) -> torch.Tensor:
    return torch.tensor(list(frame), dtype=torch.uint8)


@pytest.mark.parametrize("case", GOOD)
def test_golden_frame_decodes_to_its_values(case):
    frame = base64.b64decode(GOOD[case]["frame"])
    assert Compressor(None).decompress(tensor_of(frame)).tolist() == GOOD[case]["values"]
    assert slow_frame_decoder.decode(frame) == GOOD[case]["values"]


@pytest.mark.parametrize("case", GOOD)
def test_the_encoder_still_writes_the_golden_bytes(case):
    frame = bytes(load_maker().frame_of(case).numpy())
    assert frame == base64.b64decode(GOOD[case]["frame"])


@pytest.mark.parametrize("case", BAD)
def test_bad_golden_frame_is_refused_at_its_place(case):
    frame = base64.b64decode(BAD[case]["frame"])
    with pytest.raises(FrameError, match=f"at byte {BAD[case]['position']} of the frame") as caught:
        Compressor(None).decompress(tensor_of(frame))
    assert caught.value.position == BAD[case]["position"]
    with pytest.raises(slow_frame_decoder.RejectedError):
        slow_frame_decoder.decode(frame)


def test_every_golden_file_is_what_the_script_writes():
    maker = load_maker()
    assert sorted(GOOD) == sorted([*maker.CASES, *maker.NESTED_CASES])
    good = {case: base64.b64decode(GOOD[case]["frame"]) for case in GOOD}
    bad = {
        name: (base64.b64decode(entry["frame"]), entry["position"]) for name, entry in BAD.items()
    }
    assert bad == maker.bad_frames(good)
