from __future__ import annotations

import tomllib
from pathlib import Path

import pytest

from slimgrad.core.errors import ConfigError
from slimgrad.experiments.config import (
    CompareConfig,
    DataConfig,
    MethodConfig,
    OptimizerConfig,
    TrainConfig,
    from_toml,
    recipe_path,
    to_toml,
)
from slimgrad.experiments.parts import PartConfig
from slimgrad.experiments.toml import read_toml


@pytest.mark.parametrize(
    "config",
    [
        TrainConfig(),
        TrainConfig(
            data=DataConfig(name="cifar10", path=Path("a b"), augment="none"),
            model=PartConfig.model_validate("cnn2:width=16"),
            optimizer=OptimizerConfig(name="adam", lr=0.01),
            workers=2,
            seed=3,
            out=Path("x"),
        ),
        CompareConfig(methods=[MethodConfig(name="one"), MethodConfig(name="two")], seeds=[4]),
    ],
)
def test_toml_and_json_give_the_same_configuration_back(config, tmp_path: Path):
    file = tmp_path / "config.toml"
    file.write_text(to_toml(config))
    assert from_toml(file, type(config)) == config
    assert type(config).model_validate_json(config.model_dump_json()) == config


def test_settings_given_beside_a_file_replace_its_own(tmp_path: Path):
    file = tmp_path / "config.toml"
    file.write_text("epochs = 3\nseed = 1\n")
    config = from_toml(file, TrainConfig, epochs=5)
    assert (config.epochs, config.seed) == (5, 1)


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (None, "cannot read the configuration"),
        (b"\xff\xfe", "cannot read the configuration"),
        (b"epochs = \n", "is no valid TOML: .*line 1"),
        (b"epochs = 0\n", "epochs = 0: must be"),
    ],
)
def test_a_wrong_file_is_named(tmp_path: Path, content: bytes | None, message: str):
    file = tmp_path / "config.toml"
    if content is not None:
        file.write_bytes(content)
    with pytest.raises(ConfigError, match=message):
        from_toml(file, TrainConfig)


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"data": "cifar"}, "data: unknown data set 'cifar': did you mean 'cifar10'?"),
        ({"data": "cifar10"}, "data: data set cifar10 needs a path: the file cifar-10-binary.tar"),
        ({"model": "resnet2"}, "unknown network 'resnet2': did you mean 'resnet20'?"),
        ({"model": "vgg19:depth=3"}, "unknown setting of network vgg19 'depth'"),
        ({"workers": 3}, "batch_size = 128: must be a multiple of workers = 3"),
        (
            {"method": {"name": "x", "schedule": "always"}},
            "method: method 'x' has a schedule but estimates exactly everywhere",
        ),
        (
            {"method": {"name": "x", "estimator": "skip"}},
            "method: method 'x': skip leaves no gradient for the workers to reduce; name zero",
        ),
        (
            {"method": {"name": "x", "codec": "fixed"}},
            "method: method 'x' has a codec but no quantizer",
        ),
    ],
)
def test_settings_that_do_not_go_together_are_told(changes: dict, message: str):
    with pytest.raises(ConfigError) as caught:
        TrainConfig(**changes)
    assert message in str(caught.value)


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"methods": [{"name": "a"}, {"name": "a"}]}, "method 'a' is given twice"),
        ({"seeds": [1, 2, 1]}, "seed 1 is given twice"),
        ({"seeds": [-1]}, "seed = -1: must be greater than or equal to 0"),
    ],
)
def test_a_comparison_that_cannot_be_paired_is_refused(changes: dict, message: str):
    with pytest.raises(ConfigError) as caught:
        CompareConfig(**changes)
    assert message in str(caught.value)


def test_short_forms():
    config = TrainConfig.model_validate(
        {"data": "digits", "model": "resnet20:width=8", "optimizer": "adam"}
    )
    assert config.data.name == "digits"
    assert config.model.settings == {"width": 8}
    assert config.optimizer.highest_lr == 0.001
    assert config.method.is_exact


def test_the_fingerprint_knows_what_numbers_depend_on(tmp_path: Path):
    base = TrainConfig()
    same = [
        base.replace(out=tmp_path),
        base.replace(resume=True),
        base.replace(checkpoint_every=5),
        base.replace(progress_every=1),
        base.replace(data=DataConfig(name="digits", cache_dir=tmp_path)),
    ]
    other = [
        base.replace(seed=1),
        base.replace(epochs=9),
        base.replace(workers=2),
        base.replace(threads=1),
        base.replace(optimizer=OptimizerConfig(lr=0.3)),
        base.replace(data=DataConfig(name="digits", augment="crop_flip")),
    ]
    assert {config.fingerprint("d") for config in same} == {base.fingerprint("d")}
    assert len({config.fingerprint("d") for config in [base, *other]}) == len(other) + 1
    assert base.fingerprint("d") != base.fingerprint("other data")


def test_recipes_name_known_settings():
    for name in ("digits", "cifar10"):
        values = tomllib.loads(recipe_path(name).read_text())
        assert set(values) <= set(CompareConfig.model_fields)
        assert [method["name"] for method in values["methods"]] == [
            "exact",
            "top-1",
            "NUQSGD 4 bits",
            "top-1 + NUQSGD",
        ]
        without_parts = [{"name": method["name"]} for method in values["methods"]]
        config = CompareConfig(**(values | {"methods": without_parts}))
        assert (config.workers, config.seeds) == (2, [0, 1, 2])


def test_an_unknown_recipe_gets_the_nearest_name():
    with pytest.raises(ConfigError, match=r"unknown recipe 'digit': did you mean 'digits'\?"):
        recipe_path("digit")


def test_toml(tmp_path: Path) -> None:
    path = tmp_path / "run.toml"
    path.write_text("epochs = 3")
    assert read_toml(path) == {"epochs": 3}
    path.write_text("epochs =")
    with pytest.raises(ConfigError, match=r"run\.toml is no valid TOML"):
        read_toml(path)
    path.write_bytes(b"\xff\xfe")
    with pytest.raises(ConfigError, match="cannot read the configuration"):
        read_toml(path)
    with pytest.raises(ConfigError, match=r"absent\.toml: No such file"):
        read_toml(tmp_path / "absent.toml")
