from __future__ import annotations

import copy

import pytest
import torch
from torch import nn
from torch.utils.checkpoint import checkpoint

import slimgrad
from slimgrad.approx import BitMaskReLU, use_bit_mask_relu
from slimgrad.core.errors import ConfigError, NoEffectWarning


def tensors():
    generator = torch.Generator().manual_seed(0)
    base = torch.randn(4, 6, 5, 7, generator=generator)
    base[0, 0] = 0.0
    base[1, 1, 2] = float("nan")
    return {
        "contiguous": base,
        "channels_last": base.contiguous(memory_format=torch.channels_last),
        "sliced": base[:, ::2],
        "expanded": base[:1].expand(4, -1, -1, -1),
        "transposed": base.transpose(0, 3),
        "double": base.double(),
        "bfloat16": base.bfloat16(),
        "empty": base[:0],
    }


@pytest.mark.parametrize("inplace", [False, True])
@pytest.mark.parametrize("name", tensors())
def test_output_and_gradient_are_those_of_torch(name, inplace):
    x = tensors()[name]
    if name == "expanded" and inplace:
        x = x.contiguous()
    results = []
    for layer in (nn.ReLU(inplace), BitMaskReLU(inplace)):
        leaf = x.clone(memory_format=torch.preserve_format).requires_grad_()
        start = leaf * 1.5 if inplace else leaf
        output = layer(start)
        for grad in (torch.ones_like(output), torch.linspace(-1, 1, 7).to(x.dtype)[: x.shape[3]]):
            leaf.grad = None
            if grad.dim() == 1:
                if x.shape[3] != 7:
                    continue
                grad = grad.expand(output.shape)
            output.backward(grad, retain_graph=True)
            results.append((output.detach().clone(), leaf.grad.clone()))
    half = len(results) // 2
    for stock, ours in zip(results[:half], results[half:], strict=True):
        for a, b in zip(stock, ours, strict=True):
            assert torch.equal(a.nan_to_num(7), b.nan_to_num(7))
            assert a.stride() == b.stride() or a.numel() == 0


def test_second_derivatives():
    x = torch.randn(20, generator=torch.Generator().manual_seed(1), dtype=torch.float64)
    x.requires_grad_()
    assert torch.autograd.gradcheck(BitMaskReLU(), (x,))
    assert torch.autograd.gradgradcheck(lambda t: BitMaskReLU()(t * t), (x,))


def test_checkpointing_copies_and_compiled_code():
    layer = nn.Sequential(nn.Linear(8, 8), BitMaskReLU())
    x = torch.randn(3, 8, generator=torch.Generator().manual_seed(2), requires_grad=True)
    layer(x).sum().backward()
    expected = x.grad.clone()
    for run in (
        lambda t: checkpoint(layer, t, use_reentrant=False),
        lambda t: checkpoint(layer, t, use_reentrant=True),
        copy.deepcopy(layer),
        torch.compile(layer, fullgraph=True, backend="aot_eager"),
    ):
        x.grad = None
        run(x).sum().backward()
        torch.testing.assert_close(x.grad, expected)
    with torch.no_grad():
        assert torch.equal(layer(x), torch.relu(layer[0](x)))


def saved_bytes(model, x):
    found = {}

    def pack(tensor):
        storage = tensor.untyped_storage()
        found[storage.data_ptr()] = storage.nbytes()
        return tensor

    parameters = {p.untyped_storage().data_ptr() for p in model.parameters()}
    with torch.autograd.graph.saved_tensors_hooks(pack, lambda tensor: tensor):
        output = model(x)
    del output
    return sum(size for place, size in found.items() if place not in parameters)


def network():
    return nn.Sequential(
        nn.Conv2d(3, 16, 3, padding=1),
        nn.ReLU(),
        nn.Conv2d(16, 16, 3, padding=1),
        nn.ReLU(),
        nn.Conv2d(16, 16, 3, padding=1),
        nn.ReLU(),
        nn.Conv2d(16, 4, 3, padding=1),
    )


def test_what_needs_no_input_frees_it():
    x = torch.randn(8, 3, 16, 16)
    stock = saved_bytes(network(), x)
    activation = 8 * 16 * 16 * 16 * 4
    model = network()
    handle = slimgrad.approximate(model, slimgrad.Zero())
    # The rectifier still holds what the convolution no longer needs.
    assert saved_bytes(model, x) == stock - x.nbytes
    assert use_bit_mask_relu(model) == 3
    assert saved_bytes(model, x) == 3 * activation // 32
    handle.restore()
    assert stock == x.nbytes + 3 * activation


def test_modules_turn_and_turn_back():
    model = network()
    hooks = []
    model[1].register_forward_hook(lambda *args: hooks.append(1))
    assert use_bit_mask_relu(model) == 3
    assert use_bit_mask_relu(model) == 0
    assert isinstance(model[1], nn.ReLU)
    model(torch.zeros(1, 3, 4, 4))
    assert hooks == [1]
    assert use_bit_mask_relu(model, on=False) == 3
    assert type(model[1]) is nn.ReLU


def test_nothing_to_turn_is_told():
    with pytest.warns(NoEffectWarning, match=r"no torch\.nn\.ReLU module"):
        use_bit_mask_relu(nn.Linear(2, 2))
    with pytest.raises(ConfigError, match=r"model must be a torch\.nn\.Module, got 3"):
        use_bit_mask_relu(3)
