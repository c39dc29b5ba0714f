import json

import pytest
import torch

from slimgrad.cli.app import execute
from slimgrad.cli.output import print_aligned
from slimgrad.core.errors import ConfigError

SMALL = ["--model", "resnet14:width=2", "--batch-size", "8", "--batches", "16"]


def test_gradient_shows_the_network_with_and_without_batch_normalisation(capsys):
    assert execute(["probe", "gradient", *SMALL, "--estimators", "topone zero"]) == 0
    text = capsys.readouterr().out
    assert "resnet14:width=2, untrained, with batch normalisation: 16 batches" in text
    assert "resnet14:width=2, untrained, without batch normalisation: 16 batches" in text
    lines = [line for line in text.splitlines() if line.startswith("blocks.0.conv1 ")]
    assert [line.split()[1] for line in lines] == ["TopOne(scale=1.0)", "Zero()"] * 2
    assert lines[1].split()[-1] == "biased" or lines[3].split()[-1] == "biased"


def test_gradient_as_json_after_training(capsys):
    command = ["probe", "gradient", *SMALL, "--estimators", "zero", "--train-steps", "2", "--json"]
    assert execute(command) == 0
    found = json.loads(capsys.readouterr().out)
    assert set(found) == {"with batch normalisation", "without batch normalisation"}
    rows = found["with batch normalisation"]["rows"]
    assert len(rows) == 13
    assert rows[0]["cosine"] is None
    assert rows[0]["norm_ratio"] == 0


def test_compression_of_a_network(capsys):
    command = ["probe", "compression", *SMALL[:4], "--train-steps", "1", "--min-numel", "100"]
    assert execute(command) == 0
    text = capsys.readouterr().out
    assert "NUQSGD(bits=4" in text
    assert any(line.startswith("blocks.0.conv1.weight") is False for line in text.splitlines())
    assert "tensors go exact; in all" in text


def test_compression_of_saved_gradients(capsys, tmp_path):
    path = tmp_path / "mine.pt"
    torch.save({"w": torch.linspace(-1, 1, 5000)}, path)
    command = ["probe", "compression", "--gradients", str(path), "--quantizer", "qsgdinf:bits=3"]
    assert execute([*command, "--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert found["rows"][0]["exact"]  # one dimension
    assert found["defects"] == []


def test_compression_by_a_sparsifier(capsys, tmp_path):
    path = tmp_path / "mine.pt"
    torch.save({"w": torch.linspace(-1, 1, 5000).view(50, 100)}, path)
    command = ["probe", "compression", "--gradients", str(path), "--quantizer", "randomk:keep=0.5"]
    assert execute(command) == 0
    assert "RandomK(keep=0.5" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"no archive", "is no file of torch.save"),
        ({"w": torch.ones(3, dtype=torch.int64)}, "must hold a mapping from names"),
        ([torch.ones(3)], "must hold a mapping from names"),
    ],
)
def test_files_of_another_kind_are_refused(content, message, capsys, tmp_path):
    path = tmp_path / "mine.pt"
    if isinstance(content, bytes):
        path.write_bytes(content)
    else:
        torch.save(content, path)
    assert execute(["probe", "compression", "--gradients", str(path)]) == 2
    assert message in capsys.readouterr().err


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["gradient", "--estimators", "topon"], "did you mean 'topone'"),
        (["gradient", "--batches", "3"], "at least 16 batches, got 3"),
        (["gradient", "--batch-size", "0"], "batch_size = 0: must be at least 1"),
        (["gradient", "--train-steps", "-1"], "train_steps = -1: must be 0 or more"),
        (["compression", "--codec", "fixd"], "did you mean 'fixed'"),
        (["compression", "--gradients", "nowhere.pt"], "nowhere.pt: No such file"),
    ],
)
def test_wrong_settings_are_one_line(options, message, capsys):
    assert execute(["probe", *options]) == 2
    error = capsys.readouterr().err
    assert message in error
    assert error.count("\n") == 1


def test_columns_line_up(capsys):
    print_aligned(("name", "n"), [("a", "1"), ("long name", "22")], left=1)
    assert capsys.readouterr().out == "name        n\na           1\nlong name  22\n"
    with pytest.raises(ConfigError, match="one text for every heading"):
        print_aligned(("name", "n"), [("a",)], left=1)
