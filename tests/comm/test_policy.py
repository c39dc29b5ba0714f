import pytest

from slimgrad.comm.policy import Policy
from slimgrad.core.errors import ConfigError


def test_by_default_vectors_and_small_tensors_go_exact():
    policy = Policy()
    assert policy.is_exact("bias", (4096,))
    assert policy.is_exact("scale", ())
    assert policy.is_exact("small", (31, 33))
    assert policy.is_exact("empty", (0, 5))
    assert not policy.is_exact("weight", (32, 32))


def test_every_rule_can_be_changed():
    assert not Policy(exact_vectors=False).is_exact("bias", (4096,))
    assert not Policy(min_numel=0, exact_vectors=False).is_exact("scale", ())
    policy = Policy(exact_names=("head.*", "*.norm?"))
    assert policy.is_exact("head.weight", (64, 64))
    assert policy.is_exact("layer.norm1", (64, 64))
    assert not policy.is_exact("layer.norm12", (64, 64))
    assert not policy.is_exact("Head.weight", (64, 64))


def test_share_of_exact_components():
    shapes = [("a", (100, 30)), ("b", (1000,))]
    assert Policy().exact_share(shapes) == 0.25
    assert Policy(exact_names=("a",)).exact_share(shapes) == 1.0
    assert Policy().exact_share([]) == 0.0


def test_patterns_without_a_match_are_found():
    policy = Policy(exact_names=("head.*", "tail.*"))
    assert policy.unmatched(["head.weight"]) == ["tail.*"]


def test_equal_policies_are_equal():
    assert Policy(exact_names=("a",)) == Policy(exact_names=["a"])  # type: ignore[arg-type]
    assert len({Policy(), Policy(min_numel=5)}) == 2


@pytest.mark.parametrize("min_numel", [-1, 1.5, "many"])
def test_a_bad_min_numel_is_named(min_numel):
    with pytest.raises(ConfigError, match=f"got {min_numel!r}"):
        Policy(min_numel=min_numel)


@pytest.mark.parametrize("names", ["head.*", (1, 2), {"head.*"}, iter(["head.*"]), None])
def test_bad_patterns_are_named(names):
    with pytest.raises(ConfigError, match="tuple of name patterns"):
        Policy(exact_names=names)
