import pytest

from slimgrad.comm.compressor import Compressor
from slimgrad.comm.lowrank import PowerSGD
from slimgrad.comm.policy import Policy
from slimgrad.comm.quantizers import NUQSGD, QSGD
from slimgrad.comm.sparsifiers import TopK
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


def test_the_first_layer_that_matches_decides_before_all_other_rules():
    sparse, rough = Compressor(TopK()), Compressor(QSGD(bits=2))
    policy = Policy(
        layers=(("head.*", None), ("*.weight", sparse), ("*", rough)), exact_names=("body.weight",)
    )
    default = Compressor(NUQSGD())

    def chosen(name, shape, step=0):
        return policy.compressor_for(name, shape, step, default)

    assert chosen("head.weight", (99, 99)) is None
    assert chosen("body.weight", (99, 99)) is sparse
    assert chosen("body.bias", (3,)) is rough
    assert policy.is_exact("head.weight", (99, 99))
    assert not policy.is_exact("body.bias", (3,))
    assert policy.exact_share([("head.w", (30,)), ("a", (90,))]) == 0.25
    one = Policy(layers=(("head.*", sparse),))
    assert one.compressor_for("body.weight", (99, 99), 0, default) is default
    assert one.compressor_for("body.bias", (99,), 0, default) is None
    assert one.unmatched(["body.weight"]) == ["head.*"]


def test_layers_keep_no_state_of_others():
    layer = Compressor(PowerSGD())
    copied = Policy(layers=(("a", layer), ("b", None))).with_own_state().layers
    assert copied[0][1].starts is not layer.starts
    assert repr(copied[0][1]) == repr(layer)
    assert copied[1] == ("b", None)


def test_the_first_steps_go_exact():
    policy, default = Policy(warm_up=3), Compressor(NUQSGD())
    chosen = [policy.compressor_for("w", (99, 99), step, default) for step in range(5)]
    assert chosen == [None, None, None, default, default]


def test_strength_follows_its_steps():
    policy = Policy(strength=((2, 8), (4, 3)))
    default = Compressor(NUQSGD(bits=5))
    chosen = [policy.compressor_for("w", (99, 99), step, default) for step in range(6)]
    assert [c.method.bits for c in chosen] == [5, 5, 8, 8, 3, 3]
    layers = Policy(strength=((0, 8),), layers=(("w", default),))
    assert layers.compressor_for("w", (99, 99), 0, default) is default


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"layers": (("a",),)}, "pairs of a pattern and a Compressor or None, got"),
        ({"layers": (("a", NUQSGD()),)}, "Compressor or None, got"),
        ({"layers": ((1, None),)}, "Compressor or None, got"),
        ({"warm_up": -1}, "warm_up must be a number of steps >= 0, got -1"),
        ({"warm_up": 2.0}, "warm_up must be a number of steps"),
        ({"warm_up": True}, "got True"),
        ({"strength": ((-1, 4),)}, "strength must be pairs of a step and a number"),
        ({"strength": (4,)}, "strength must be pairs"),
        ({"strength": ((5, 4), (5, 3))}, "the steps of strength must ascend"),
    ],
)
def test_bad_layers_and_steps_are_named(settings, message):
    with pytest.raises(ConfigError, match=message):
        Policy(**settings)


def test_a_switch_that_is_none_is_refused():
    with pytest.raises(ConfigError, match="exact_vectors must be True or False, got 'x'"):
        Policy(exact_vectors="x")
