from __future__ import annotations

import pytest

from slimgrad.cli.options import named, parse_seeds, with_settings
from slimgrad.core.errors import ConfigError


@pytest.mark.parametrize(
    ("text", "seeds"),
    [("3", [3]), ("0,1,2", [0, 1, 2]), ("0-4", [0, 1, 2, 3, 4]), ("7, 1-2", [7, 1, 2])],
)
def test_seeds(text: str, seeds: list[int]) -> None:
    assert parse_seeds(text) == seeds


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "write seeds as"),
        ("one", "write seeds as"),
        ("1-", "write seeds as"),
        ("-1", "write seeds as"),
        ("4-2", "runs backwards"),
        ("0-99999999999", "at most 1000"),
    ],
)
def test_wrong_seeds(text: str, message: str) -> None:
    with pytest.raises(ConfigError, match=message):
        parse_seeds(text)


def test_settings_of_a_part_in_both_forms() -> None:
    assert with_settings("nuqsgd", bits=4, bucket_size=512) == "nuqsgd:bits=4,bucket_size=512"
    assert with_settings("nuqsgd:bits=8", bits=4) == "nuqsgd:bits=8,bits=4"
    assert with_settings({"name": "nuqsgd", "bits": 8}, bits=4) == {"name": "nuqsgd", "bits": 4}
    assert with_settings("nuqsgd", bits=None) == "nuqsgd"


def test_another_name_drops_the_settings_of_the_old_one() -> None:
    settings = {"data": {"name": "cifar10", "path": "c.tar"}}
    assert named(settings, "data", "digits") == {"data": {"name": "digits"}}
    assert named(settings, "data", "cifar10", path="d.tar")["data"]["path"] == "d.tar"
    assert named({}, "data", None, path=None) == {}
