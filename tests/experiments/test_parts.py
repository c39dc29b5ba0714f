from __future__ import annotations

import pytest

from slimgrad.comm.codecs import Auto
from slimgrad.core.errors import ConfigError
from slimgrad.core.registry import Registry
from slimgrad.experiments.parts import (
    PartConfig,
    call_checked,
    make_compressor,
    make_part,
    parse_part,
)

GADGETS: Registry[type] = Registry("gadget")


@GADGETS.add("wheel")
class Wheel:
    def __init__(self, spokes: int, size: float = 1.0) -> None:
        if spokes < 3:
            raise ConfigError(f"spokes = {spokes}: must be at least 3")
        if spokes > 99:
            raise TypeError("spokes are too many")
        self.spokes, self.size = spokes, size


def test_a_part_is_made_from_its_name_and_settings():
    wheel = make_part(GADGETS, PartConfig.model_validate("wheel:spokes=8,size=0.5"))
    assert (wheel.spokes, wheel.size) == (8, 0.5)


def test_the_short_form_knows_numbers_truth_and_words():
    assert parse_part("a:i=1,f=1e-2,t=True,w=l2") == {
        "name": "a",
        "i": 1,
        "f": 0.01,
        "t": True,
        "w": "l2",
    }


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("wheal:spokes=3", "unknown gadget 'wheal': did you mean 'wheel'?"),
        ("wheel:spoke=3", "unknown setting of gadget wheel 'spoke': did you mean 'spokes'?"),
        ("wheel", "gadget wheel needs the setting 'spokes'"),
        ("wheel:spokes=2", "gadget wheel: spokes = 2: must be at least 3"),
        ("wheel:spokes=100", "gadget wheel: spokes are too many"),
        ("wheel:8", "'wheel:8': write settings as name:key=value,key=value"),
    ],
)
def test_what_is_wrong_with_a_part_is_told(text: str, message: str):
    with pytest.raises(ConfigError) as caught:
        make_part(GADGETS, PartConfig.model_validate({"name": "x"} | parse_part(text)))
    assert message in str(caught.value)


def test_leading_arguments_may_be_given_later():
    make = call_checked("network", "pair", lambda shape, width=1: (shape, width), {"width": 2}, 1)
    assert make("shape") == ("shape", 2)


def test_a_part_without_settings_says_so():
    with pytest.raises(
        ConfigError, match=r"unknown setting of gadget stone 'x': allowed: \(none\)"
    ):
        call_checked("gadget", "stone", lambda: None, {"x": 1})


def test_a_codec_keeps_its_settings():
    quantizer = PartConfig(name="qsgd")
    made = make_compressor(quantizer, PartConfig.model_validate("auto:link_bits_per_second=1e9"))
    assert made.codec == Auto(link_bits_per_second=1e9)
    assert make_compressor(quantizer).codec.name == "fixed"
