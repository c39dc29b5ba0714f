from __future__ import annotations

import pytest

from slimgrad.core.errors import ConfigError
from slimgrad.experiments.config import CompareConfig, TrainConfig


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"epoch": 3}, "unknown setting 'epoch': did you mean 'epochs'? allowed: batch_size, "),
        ({"epochs": 0}, "epochs = 0: must be greater than or equal to 1"),
        ({"epochs": "many"}, "epochs = 'many': must be a valid integer"),
        ({"epochs": 0, "seed": -1}, "epochs = 0: must be greater than or equal to 1 (and 1 more)"),
        ({"optimizer": {"name": "sdg"}}, "optimizer: unknown name 'sdg': did you mean 'sgd'?"),
        ({"optimizer": {"lr": -1}}, "optimizer: lr = -1: must be greater than 0"),
        ({"optimizer": {"lr": float("inf")}}, "optimizer: lr = inf: must be a finite number"),
        ({"optimizer": {"momentun": 0}}, "optimizer: unknown setting 'momentun': did you mean 'm"),
        ({"memory_format": "nhwc"}, "unknown memory_format 'nhwc': allowed: channels_last, contig"),
        ({"method": {}}, "method: the setting name is required"),
        ({"data": 3}, "data = 3: must be a table of settings"),
        ({"method": "topone"}, "method = 'topone': must be a table of settings"),
    ],
)
def test_a_wrong_setting_is_told_in_one_line(changes: dict, message: str):
    with pytest.raises(ConfigError) as caught:
        TrainConfig(**changes)
    assert message in str(caught.value)
    assert "\n" not in str(caught.value)


def test_places_in_lists_are_named():
    with pytest.raises(ConfigError, match=r"^methods\[1\]: unknown setting 'nmae': did you mean"):
        CompareConfig.model_validate({"methods": [{"name": "a"}, {"nmae": "b"}]})


@pytest.mark.parametrize(
    ("text", "message"),
    [('{"epochs": 0}', "epochs = 0: must be"), ("{", "Invalid JSON"), ("[]", "must be an object")],
)
def test_a_wrong_json_text_is_told(text: str, message: str):
    with pytest.raises(ConfigError, match=message) as caught:
        TrainConfig.model_validate_json(text)
    assert "\n" not in str(caught.value)


def test_an_empty_list_is_told():
    with pytest.raises(ConfigError, match=r"^seeds = \[\]: must not be empty$"):
        CompareConfig(seeds=[])


def test_replacing_a_setting_validates_it():
    config = TrainConfig(workers=2)
    assert config.replace(epochs=9).epochs == 9
    assert config.replace(epochs=9).workers == 2
    with pytest.raises(ConfigError, match="batch_size = 7: must be a multiple of workers = 2"):
        config.replace(batch_size=7)
