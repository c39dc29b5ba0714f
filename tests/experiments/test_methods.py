"""Methods of both halves of the library, as a configuration names them and a run uses them."""

from __future__ import annotations

import pytest

from slimgrad.core.errors import ConfigError
from slimgrad.experiments.config import CompareConfig, MethodConfig, from_toml, recipe_path
from slimgrad.experiments.train import train


@pytest.mark.parametrize("recipe", ["digits", "cifar10"])
def test_recipes_are_valid(recipe: str):
    config = from_toml(recipe_path(recipe), CompareConfig)
    assert [method.is_exact for method in config.methods] == [True, False, False, False]


@pytest.mark.parametrize(
    ("parts", "message"),
    [
        ({"estimator": "topon"}, "did you mean 'topone'"),
        ({"estimator": "topone", "schedule": "every_nth"}, "did you mean 'every_nth_"),
        ({"quantizer": "nuqsdg"}, "did you mean 'nuqsgd'"),
        ({"quantizer": "nuqsgd", "codec": "fixd"}, "did you mean 'fixed'"),
        ({"quantizer": "nuqsgd:bit=4"}, "did you mean 'bits'"),
        ({"quantizer": "nuqsgd:bits=99"}, "99"),
    ],
)
def test_a_wrong_part_is_told_before_anything_starts(parts: dict, message: str):
    with pytest.raises(ConfigError, match=message) as caught:
        MethodConfig(name="x", **parts)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize(
    "parts",
    [
        {"estimator": "topone", "schedule": "every_nth_layer:n=4,start=2"},
        {"estimator": "random:scale=0.01", "schedule": "every_nth_step:n=4"},
        {"estimator": "zero", "schedule": "alternate"},
        {"estimator": "topone"},
    ],
)
def test_an_interrupted_approximate_run_resumes_to_the_same_bits(
    tiny_config, tmp_path, interrupt_at, parts: dict
):
    method = MethodConfig(name="approximate", **parts)
    whole = train(tiny_config(method=method, out=tmp_path / "whole")).results[0]
    config = tiny_config(method=method, checkpoint_every=5)
    with interrupt_at(13):
        train(config)
    resumed = train(config.replace(resume=True)).results[0]
    assert 0 < whole["saved_macs_share"] < 1
    for name in ("parameters_sha256", "final_accuracy", "bits_per_component", "saved_macs_share"):
        assert resumed[name] == whole[name]
