"""Methods of both halves of the library, as a configuration names them and a run uses them."""

from __future__ import annotations

import pytest

from slimgrad.comm.feedback import DGC
from slimgrad.comm.lowrank import LOW_RANK
from slimgrad.comm.quantizers import QSGD, QUANTIZERS, Levels
from slimgrad.comm.sparsifiers import SPARSIFIERS, TopK
from slimgrad.core.errors import ConfigError
from slimgrad.experiments.config import (
    CompareConfig,
    MethodConfig,
    TrainConfig,
    from_toml,
    recipe_path,
    to_toml,
)
from slimgrad.experiments.parts import make_compressor, make_feedback, make_method
from slimgrad.experiments.records import read_records
from slimgrad.experiments.session import open_records, prepare
from slimgrad.experiments.train import train

COMPRESSION = (*QUANTIZERS, *SPARSIFIERS, *LOW_RANK)


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
        ({"quantizer": "topkk"}, "unknown quantizer, sparsifier or low-rank method 'topkk': did"),
        ({"quantizer": "topk:bits=4"}, "setting of sparsifier topk 'bits': allowed: keep"),
        ({"quantizer": "topk:keep=half"}, "sparsifier topk: TopK keeps a share above 0"),
        ({"quantizer": "powersgd:rank=0"}, "low-rank method powersgd: PowerSGD needs a rank >= 1"),
        ({"quantizer": "topk", "values": "topk"}, "unknown quantizer 'topk'"),
        ({"quantizer": "qsgd", "values": "nuqsgd"}, "values=NUQSGD.* is neither; leave it out"),
        (
            {"quantizer": "topk", "feedback": "eror"},
            "unknown feedback 'eror': did you mean 'error'",
        ),
        ({"quantizer": "topk", "feedback": "error:decay=2"}, "decay must be above 0"),
        ({"values": "nuqsgd"}, "has values but no quantizer: .* leave 'nuqsgd' out"),
        ({"feedback": "error"}, "has feedback but no quantizer"),
    ],
)
def test_a_wrong_part_is_told_before_anything_starts(parts: dict, message: str):
    with pytest.raises(ConfigError, match=message) as caught:
        MethodConfig(name="x", **parts)
    assert "\n" not in str(caught.value)


def test_names_of_compression_methods_are_of_one_method_each():
    names = [*QUANTIZERS, *SPARSIFIERS, *LOW_RANK]
    assert len(names) == len(set(names))
    with pytest.raises(ConfigError) as caught:
        MethodConfig(name="x", quantizer="?")
    assert str(caught.value).endswith("allowed: " + ", ".join(sorted(names)))


@pytest.mark.parametrize("name", [name for name in COMPRESSION if name != "levels"])
def test_every_compression_method_is_made_by_its_name(name: str):
    found = make_method(MethodConfig(name="x", quantizer=name).quantizer)
    assert found.name == name


def test_lists_of_settings_are_given_as_tables(tmp_path):
    file = tmp_path / "run.toml"
    file.write_text(
        '[method]\nname = "x"\nquantizer = { name = "levels", levels = [0.0, 0.25, 1.0] }\n'
    )
    method = from_toml(file, TrainConfig).method
    assert make_method(method.quantizer) == Levels((0.0, 0.25, 1.0))


def test_all_parts_of_a_compression_come_from_the_file(tmp_path):
    file = tmp_path / "run.toml"
    file.write_text(
        '[method]\nname = "x"\nquantizer = "topk:keep=0.25"\ncodec = "elias_gamma"\n'
        'values = { name = "qsgd", bits = 3 }\nfeedback = "dgc:momentum=0.5,clip=2.0"\n'
    )
    method = from_toml(file, TrainConfig).method
    made = make_compressor(method.quantizer, method.codec, method.values)
    assert (made.method, made.codec.name, made.values) == (TopK(0.25), "elias_gamma", QSGD(3))
    assert make_feedback(method.feedback) == DGC(momentum=0.5, clip=2.0)
    assert not method.is_exact
    file.write_text(to_toml(from_toml(file, TrainConfig)))
    assert from_toml(file, TrainConfig).method == method


def test_the_momentum_of_feedback_is_that_of_sgd(tiny_config):
    dgc = {"name": "x", "quantizer": "topk:keep=0.1", "feedback": "dgc"}
    with pytest.raises(ConfigError, match="feedback dgc is the momentum of sgd, the optimizer is"):
        tiny_config(method=dgc, optimizer="adam")
    with pytest.raises(ConfigError, match="feedback dgc is the momentum of sgd"):
        CompareConfig(optimizer="adam", methods=[{"name": "exact"}, dgc])


@pytest.mark.parametrize(
    ("parts", "message"),
    [
        ({"quantizer": "qsgd:bits=2", "feedback": "error"}, "memory could grow without limit"),
        ({"quantizer": "powersgd", "feedback": "dgc:warm_up=3"}, "keeps none; use warm_up=0"),
    ],
)
def test_feedback_that_could_pile_up_is_told_before_anything_is_written(
    tiny_config, parts: dict, message: str
):
    config = tiny_config(model="cnn2:width=16", method={"name": "x", **parts})
    with pytest.raises(ConfigError, match=message):
        train(config)
    assert not config.out.exists()


def test_records_describe_the_whole_compression(tiny_config):
    method = {"name": "x", "quantizer": "topk:keep=0.1", "values": "qsgd", "feedback": "error"}
    config = tiny_config(method=method)
    plan = prepare("train", config, [config])
    open_records(config, plan)
    (session,) = read_records(plan.records)
    described = session["config"]["method"]
    assert described["quantizer"] == {"name": "topk", "keep": 0.1}
    assert described["values"] == {"name": "qsgd"}
    assert described["feedback"] == {"name": "error"}
    assert session["reference"] is None


@pytest.mark.filterwarnings("ignore:there is one rank only")
def test_one_worker_keeps_the_momentum_of_sgd(tiny_config, tmp_path):
    dgc = {"name": "x", "quantizer": "topk:keep=0.1", "feedback": "dgc"}
    alone = train(tiny_config(epochs=1, method=dgc)).results[0]
    exact = train(tiny_config(epochs=1, out=tmp_path / "exact")).results[0]
    assert alone["parameters_sha256"] == exact["parameters_sha256"]


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
