"""Conversion keeps everything of a model that is not the weight gradient."""

from __future__ import annotations

import copy
import io
import pickle

import pytest
import torch
from torch import nn
from torch.nn.utils import parametrizations

from slimgrad.approx import (
    Always,
    EveryNthLayer,
    EveryNthStep,
    Exact,
    Random,
    TopOne,
    Zero,
    approximate,
)
from slimgrad.core.errors import ConfigError, NoEffectWarning


class Tuned(nn.Conv2d):
    """A subclass without a forward of its own."""


class Doubled(nn.Conv2d):
    def forward(self, input):
        return 2 * super().forward(input)


class Tagged(nn.Conv2d):
    def __init_subclass__(cls, *, tag, **kwargs):
        super().__init_subclass__(**kwargs)


class Registered(nn.Conv2d):
    def __init_subclass__(cls):
        raise ValueError("the name is taken")


class SelfMade(nn.Conv2d):
    """Says itself how it is copied."""

    def __reduce__(self):
        return SelfMade, (self.in_channels, self.out_channels, self.kernel_size)


def small_net():
    torch.manual_seed(0)
    return nn.Sequential(
        nn.Conv2d(3, 4, 3, padding=1),
        nn.BatchNorm2d(4),
        nn.ReLU(inplace=True),
        Tuned(4, 4, 3, padding=1),
        nn.ReLU(inplace=True),
        nn.Flatten(),
        nn.Linear(4 * 36, 5),
    )


def backward(model, seed=1):
    torch.manual_seed(seed)
    x = torch.randn(2, 3, 6, 6)
    model.zero_grad()
    model(x).square().sum().backward()
    return {name: parameter.grad for name, parameter in model.named_parameters()}


def test_identity_of_everything_but_the_class():
    model = small_net()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    modules, parameters = list(model.modules()), list(model.parameters())
    keys, classes = list(model.state_dict()), [type(m) for m in modules]
    handle = approximate(model, Zero(), optimizer=optimizer)
    assert all(a is b for a, b in zip(modules, model.modules(), strict=True))
    assert all(a is b for a, b in zip(parameters, model.parameters(), strict=True))
    assert list(model.state_dict()) == keys
    assert isinstance(model[0], nn.Conv2d)
    assert isinstance(model[3], Tuned)
    assert "weight_grad=Zero()" in repr(model)
    handle.restore()
    assert [type(m) for m in modules] == classes
    assert all(vars(m).keys() == vars(type(m)(1, 1, 1)).keys() for m in (model[0], model[3]))
    handle.restore()


def test_state_dict_both_ways():
    stock, converted = small_net(), small_net()
    with torch.no_grad():
        stock[0].weight.add_(1)
    approximate(converted, Zero())
    converted.load_state_dict(stock.state_dict())
    assert torch.equal(converted[0].weight, stock[0].weight)
    stock.load_state_dict(converted.state_dict())


def test_hooks_and_in_place_activations_keep_working():
    model = small_net()
    seen = []
    model[0].register_forward_pre_hook(lambda m, args: seen.append("pre"))
    model[0].register_forward_hook(lambda m, args, out: seen.append("post"))
    model[3].register_full_backward_hook(lambda m, gi, go: seen.append("backward"))
    model[4] = nn.ReLU()  # torch forbids in-place activations behind its own backward hooks
    handle = approximate(model, TopOne())
    backward(model)
    assert seen == ["pre", "post", "backward"]
    handle.restore()
    backward(model)
    assert seen == ["pre", "post", "backward"] * 2


def test_in_place_activation_gives_the_stock_gradients(traced):
    expected = backward(small_net())
    model = small_net()
    approximate(model, traced)
    for name, gradient in backward(model).items():
        torch.testing.assert_close(gradient, expected[name], rtol=1e-5, atol=1e-5)


def test_tied_weights_sum_their_gradients(traced):
    def tied():
        torch.manual_seed(2)
        model = nn.Sequential(nn.Conv2d(3, 3, 3, padding=1), nn.Conv2d(3, 3, 3, padding=1))
        model[1].weight = model[0].weight
        return model

    expected = backward(tied())["0.weight"]
    model = tied()
    approximate(model, traced)
    got = backward(model)["0.weight"]
    torch.testing.assert_close(got, expected, rtol=1e-5, atol=1e-4)
    half, free = tied(), tied()
    approximate(half, Zero(), where=["0"])
    approximate(free, Zero())
    assert not backward(free)["0.weight"].any()
    assert backward(half)["0.weight"].any()


def test_module_used_twice_is_converted_once(traced):
    torch.manual_seed(3)
    shared = nn.Conv2d(3, 3, 3, padding=1)
    model = nn.Sequential(shared, nn.ReLU(), shared)
    expected = backward(copy.deepcopy(model))
    handle = approximate(model, traced)
    assert [layer.name for layer in handle.report().layers] == ["0"]
    torch.testing.assert_close(backward(model)["0.weight"], expected["0.weight"])
    assert handle.report().exact_macs == 2 * (2 * 36 * 3 * 27)


def test_deepcopy_estimates_on_and_follows_the_step():
    model = small_net()
    handle = approximate(model, Zero(), schedule=EveryNthStep(2))
    twin = copy.deepcopy(model)
    assert twin[0].weight is not model[0].weight
    assert backward(twin)["0.weight"].any()
    handle.step()
    assert not backward(twin)["0.weight"].any()
    assert handle.report().exact_macs == 0  # the copy's work is not the model's
    own = approximate(twin, TopOne())
    handle.restore()
    assert own.report().layers[0].reason == "TopOne(scale=1.0)"
    own.restore()
    assert type(twin[3]) is Tuned


def test_pickle_where_the_stock_class_pickles():
    model = small_net()
    approximate(model, Random(), optimizer=torch.optim.SGD(model.parameters(), lr=0.1), seed=7)
    loaded = pickle.loads(pickle.dumps(model))
    expected = backward(model)
    assert type(loaded[0]) is type(model[0])
    assert type(loaded[3]).__bases__[1] is Tuned
    for name, gradient in backward(loaded).items():
        assert torch.equal(gradient, expected[name])
    file = io.BytesIO()
    torch.save(model, file)
    file.seek(0)
    assert torch.equal(torch.load(file, weights_only=False)[0].weight, model[0].weight)

    class Local(nn.Conv2d):
        pass

    local = Local(1, 1, 1)
    approximate(local, Zero())
    with pytest.raises((pickle.PicklingError, AttributeError), match="Local"):
        pickle.dumps(local)
    assert type(copy.deepcopy(local)) is type(local)


def test_a_class_that_copies_itself_in_its_own_way_keeps_it():
    layer = SelfMade(3, 4, 3)
    approximate(layer, Zero())
    twin = copy.deepcopy(layer)
    assert type(twin) is SelfMade
    assert not backward(layer)["weight"].any()
    assert backward(twin)["weight"].any()
    approximate(twin, Zero())
    assert not backward(twin)["weight"].any()


def test_settings_changed_later_are_those_of_the_layer(traced):
    stock, layer = nn.Conv2d(3, 4, 3), nn.Conv2d(3, 4, 3)
    layer.load_state_dict(stock.state_dict())
    approximate(layer, traced)
    for conv in (stock, layer):
        conv.stride, conv.dilation, conv.padding = (2, 1), (1, 2), (0, 1)
    for name, gradient in backward(layer).items():
        torch.testing.assert_close(gradient, backward(stock)[name], rtol=1e-5, atol=1e-5)
    assert layer(torch.ones(1, 3, 6, 6)).shape == stock(torch.ones(1, 3, 6, 6)).shape


def test_a_second_approximate_is_refused_until_restore():
    model = small_net()
    handle = approximate(model, Zero())
    with pytest.raises(ConfigError, match=r"layer '0' is approximated already; call restore\(\)"):
        approximate(model, TopOne())
    handle.restore()
    approximate(model, TopOne()).restore()


def test_a_model_whose_handle_is_gone_can_be_approximated_again():
    model = small_net()
    approximate(model, Zero())
    handle = approximate(model, TopOne())
    handle.restore()
    assert type(model[0]) is nn.Conv2d


def test_restore_refuses_a_class_changed_since():
    model = small_net()
    handle = approximate(model, Zero())
    parametrizations.weight_norm(model[0])
    with pytest.raises(ConfigError, match="layer '0' cannot be restored: its class was changed"):
        handle.restore()
    assert backward(model)  # nothing was restored by halves


def test_only_convolutions_by_default_linear_where_there_are_none():
    handle = approximate(small_net(), Zero())
    assert handle.selected_layers() == ["0", "3"]
    linear = nn.Sequential(nn.Linear(3, 3), nn.ReLU(), nn.Linear(3, 3))
    assert approximate(linear, Zero()).selected_layers() == ["0", "2"]


def test_where_by_names_and_by_predicate():
    assert approximate(small_net(), Zero(), where=["6", "0"]).selected_layers() == ["0", "6"]
    assert approximate(small_net(), Zero(), where="3").selected_layers() == ["3"]
    chosen = approximate(small_net(), Zero(), where=lambda name, m: isinstance(m, nn.Linear))
    assert chosen.selected_layers() == ["6"]
    # Numbers count the chosen layers only.
    every = approximate(small_net(), Zero(), where=["3", "6"], schedule=EveryNthLayer(1))
    assert every.selected_layers() == ["6"]


def test_layers_left_exact_are_named_with_the_reason():
    lazy, replaced, weighted = nn.LazyConv2d(4, 3), nn.Conv2d(4, 4, 1), nn.Linear(4, 4)
    replaced.forward = nn.Identity().forward
    model = nn.ModuleDict(
        {
            "plain": nn.Conv2d(4, 4, 1),
            "twice": Doubled(4, 4, 1),
            "one": nn.Conv1d(4, 4, 1),
            "up": nn.ConvTranspose2d(4, 4, 1),
            "head": nn.Linear(4, 4),
            "lazy": lazy,
            "replaced": replaced,
            "normed": parametrizations.weight_norm(weighted),
            "attention": nn.MultiheadAttention(4, 2),
            "tagged": Tagged(4, 4, 1),
            "registered": Registered(4, 4, 1),
            "complex": nn.Conv2d(4, 4, 1, dtype=torch.complex64),
        }
    )
    handle = approximate(model, Zero(), where=lambda name, m: name != "head")
    rows = {row.name: row for row in handle.report().layers}
    assert rows["plain"].status == "approximate"
    reasons = {
        "twice": "its class Doubled has a forward of its own",
        "one": "conv1d layers have no approximate weight gradient",
        "up": "conv_transpose2d layers have no approximate weight gradient",
        "head": "not chosen by where=",
        "lazy": "it is lazy; run the model once before approximate()",
        "replaced": "its forward was replaced on the instance",
        "normed": "it has parametrizations (torch.nn.utils.parametrize)",
        "attention.out_proj": "nn.MultiheadAttention uses its weight without calling the layer",
        "complex": "its weight is complex64",
    }
    assert "its class Tagged allows no plain subclass" in rows["tagged"].reason
    assert rows["registered"].reason == (
        "its class Registered allows no plain subclass (the name is taken)"
    )
    assert {name: rows[name].reason for name in reasons} == reasons
    assert all(rows[name].status == "exact" for name in reasons)
    uncounted = {"tagged", "registered", "lazy", "replaced", "normed", "attention.out_proj"}
    assert {name for name in rows if not rows[name].counted} == uncounted
    assert "(not counted)" in str(handle.report())
    handle.restore()
    assert type(model["twice"]) is Doubled
    assert type(model["one"]) is nn.Conv1d


def test_uncountable_reason_stays_stock():
    attention = nn.MultiheadAttention(4, 2)
    with pytest.warns(NoEffectWarning, match="1 linear: nn.MultiheadAttention uses its weight"):
        approximate(attention, Zero())
    assert type(attention.out_proj) is nn.modules.linear.NonDynamicallyQuantizableLinear


def test_nothing_converted_warns():
    with pytest.warns(NoEffectWarning, match="converted no layer .the model has no such layers"):
        approximate(nn.ReLU(), Zero())
    with pytest.warns(NoEffectWarning, match="converted no layer .1 conv1d: conv1d layers have"):
        approximate(nn.Conv1d(1, 1, 1), Zero())
    with pytest.warns(NoEffectWarning, match="converted no layer .*not chosen by where="):
        approximate(small_net(), Zero(), where=[])


def test_schedule_that_selects_nothing_warns():
    with pytest.warns(
        NoEffectWarning, match=r"EveryNthLayer\(n=4, start=9\) selects none of the 2"
    ):
        approximate(small_net(), Zero(), schedule=EveryNthLayer(4, start=9))
    approximate(small_net(), Exact())  # exact on purpose: no warning


def test_names_are_the_same_inside_a_wrapper():
    model = small_net()
    handle = approximate(nn.DataParallel(model), Zero(), where=["0"])
    assert handle.report().layers[0].name == "0"
    handle.restore()
    compiled = torch.compile(model, backend="eager")
    assert approximate(compiled, Zero(), where=["0"]).selected_layers() == ["0"]


@pytest.mark.parametrize(
    ("change", "text"),
    [
        ({"model": 3}, r"model must be a torch.nn.Module, got 3"),
        (
            {"estimator": Zero},
            r"estimator must be an object such as slimgrad.TopOne\(\), got <class",
        ),
        ({"schedule": "always"}, r"schedule must be an object such as .*, got 'always'"),
        ({"schedule": Always}, r"schedule must be an object"),
        (
            {"optimizer": "sgd"},
            r"optimizer must be a torch.optim.Optimizer, got 'sgd'; leave it out",
        ),
        ({"seed": -1}, r"seed must be an integer from 0 to 2\*\*63 - 1, got -1"),
        ({"seed": True}, r"seed must be an integer .* got True"),
        ({"where": ["1x"]}, r"unknown layer in where= '1x': .*allowed: 0, 3, 6"),
        ({"where": ["1"]}, r"unknown layer in where= '1'"),
        ({"where": 5}, r"where must be layer names or a function of \(name, module\), got 5"),
        ({"where": [0]}, r"where must be layer names"),
    ],
)
def test_bad_arguments_are_refused_before_anything_changes(change, text):
    model = small_net()
    arguments = {"model": model, "estimator": Zero(), **change}
    with pytest.raises(ConfigError, match=text):
        approximate(arguments.pop("model"), arguments.pop("estimator"), **arguments)
    assert type(model[0]) is nn.Conv2d


def test_a_name_that_cannot_be_converted_is_refused():
    model = nn.Sequential(nn.Conv2d(1, 1, 1), Doubled(1, 1, 1))
    with pytest.raises(ConfigError, match="where= names layer '1', which stays exact: its class"):
        approximate(model, Zero(), where=["0", "1"])
    assert type(model[0]) is nn.Conv2d
