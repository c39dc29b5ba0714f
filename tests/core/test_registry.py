import pytest

from slimgrad.core.errors import ConfigError
from slimgrad.core.registry import Registry, unknown_name_message


def test_parts_are_found_listed_and_counted():
    shapes = Registry[type]("shape")
    shapes.add("square")(int)
    shapes.add("circle")(float)
    assert shapes.get("square") is int
    assert list(shapes) == ["circle", "square"]
    assert len(shapes) == 2
    assert "circle" in shapes
    assert "line" not in shapes


def test_a_name_is_never_reused():
    shapes = Registry[type]("shape")
    shapes.add("square")(int)
    with pytest.raises(ConfigError, match="shape 'square' is already registered"):
        shapes.add("square")(float)
    assert shapes.get("square") is int


@pytest.mark.parametrize("name", ["Sqare", "SQUARE"])
def test_the_nearest_name_is_given_whatever_its_case(name):
    assert "did you mean 'square'" in unknown_name_message("shape", name, ["square", "circle"])


@pytest.mark.parametrize("name", ["xyz", None, 3, ["square"], {}])
def test_what_is_far_from_all_or_no_name_lists_the_allowed_ones(name):
    shapes = Registry[type]("shape")
    shapes.add("circle")(float)
    with pytest.raises(ConfigError, match=r"unknown shape .*: allowed: circle$"):
        shapes.get(name)
