"""LSTM, GRU and Elman networks, which run by layers, against the CPU; and what is left to PyTorch's composition."""

import copy

import pytest
import torch
import torch_graft
from torch import nn
from torch.nn.utils.rnn import pack_padded_sequence, pad_packed_sequence



def relu(*sizes, **options):
    return nn.RNN(*sizes, nonlinearity="relu", **options)


KINDS = {"lstm": nn.LSTM, "gru": nn.GRU, "tanh": nn.RNN, "relu": relu}
OPTIONS = {
    "plain": {},
    "deep": {"num_layers": 2, "bidirectional": True, "batch_first": True},
    "no bias": {"bias": False, "bidirectional": True},
}


def flat(results):
    """The output and the last states of a network."""
    output, states = results
    return [output, *states] if isinstance(states, tuple) else [output, states]


def close(ours, theirs, **limits):
    assert ours.shape == theirs.shape and ours.dtype == theirs.dtype
    torch.testing.assert_close(ours.cpu(), theirs, **limits)


def pair(kind, device, dtype=torch.float64, **options):
    torch.manual_seed(1)
    net = KINDS[kind](5, 6, dtype=dtype, **options)
    x = torch.randn(3, 4, 5, dtype=dtype)
    return net, copy.deepcopy(net).to(device), x.clone().requires_grad_(), x.to(device).requires_grad_()


def loss_of(results):
    weights = (torch.linspace(-1, 1, result.numel()).to(result).view(result.shape) for result in results)
    return sum((result * weight).sum() for result, weight in zip(results, weights))


@pytest.mark.parametrize("options", OPTIONS)
@pytest.mark.parametrize("kind", KINDS)
def test_results_and_gradients(device, kind, options):
    net, twin, x, there = pair(kind, device, **OPTIONS[options])
    theirs, ours = flat(net(x)), flat(twin(there))
    for a, b in zip(ours, theirs, strict=True):
        close(a, b)
    wants, gots = ([x, *net.parameters()], [there, *twin.parameters()])
    for a, b in zip(torch.autograd.grad(loss_of(ours), gots), torch.autograd.grad(loss_of(theirs), wants), strict=True):
        close(a, b)


@pytest.mark.parametrize("part", range(3))
def test_gradients_of_one_result(device, part):
    net, twin, x, there = pair("lstm", device)
    ours = torch.autograd.grad(flat(twin(there))[part].sum(), [there, *twin.parameters()])
    theirs = torch.autograd.grad(flat(net(x))[part].sum(), [x, *net.parameters()])
    for a, b in zip(ours, theirs, strict=True):
        close(a, b)


@pytest.mark.parametrize("kind", KINDS)
def test_gradients_of_gradients(device, kind):
    net, twin, x, there = pair(kind, device, bidirectional=True)
    found = []
    for module, leaf in ((net, x), (twin, there)):
        first = torch.autograd.grad(loss_of(flat(module(leaf))), [leaf, *module.parameters()], create_graph=True)
        penalty = sum(gradient.square().sum() for gradient in first)
        found.append(torch.autograd.grad(penalty, [leaf, *module.parameters()]))
    for a, b in zip(found[1], found[0], strict=True):
        close(a, b)


def test_given_states_without_gradients_and_inference(device):
    net, twin, x, there = pair("lstm", device, num_layers=2)
    states = [torch.randn(2, 4, 6, dtype=x.dtype) for _ in range(2)]
    theirs = flat(net(x, tuple(states)))
    for mode in (torch.no_grad, torch.inference_mode):
        with mode():
            for a, b in zip(flat(twin(there, tuple(state.to(device) for state in states))), theirs, strict=True):
                assert not a.requires_grad
                close(a, b.detach())


def test_a_layer_is_a_few_launches(device):
    count = torch_graft.statistics
    if count(device) is None:
        pytest.skip("the plugin does not count")
    net, x = nn.LSTM(5, 6).to(device), torch.randn(40, 4, 5, device=device)
    net(x)[0].sum().backward()
    before = count(device).launches
    net(x)[0].sum().backward()
    assert count(device).launches - before < 40


def test_autocast_and_half_types(device):
    net, twin, x, there = pair("gru", device, torch.float32)
    with torch.autocast(device.type, torch.bfloat16):
        output, state = twin(there)
    close(output, net(x)[0], rtol=0.05, atol=0.05)
    output.sum().backward()
    assert there.grad.isfinite().all().item()
    halves = copy.deepcopy(net).to(device, torch.float16)(there.detach().half())[0]
    close(halves.float(), net(x)[0].detach(), rtol=0.01, atol=0.01)


@pytest.mark.parametrize("batch", [3, 0])
@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
@pytest.mark.parametrize("kind", KINDS)
def test_autocast_keeps_states_where_the_cpu_does(device, kind, dtype, batch):
    net, twin, _, _ = pair(kind, device, torch.float32, num_layers=2)
    x, state = torch.randn(4, batch, 5), torch.randn(2, batch, 6, dtype=dtype)
    found = []
    for module, where in ((net, "cpu"), (twin, device.type)):
        given = state.to(where)
        with torch.autocast(where, torch.bfloat16):
            found.append([flat(module(x.to(where), first)) for first in (None, (given, given) if kind == "lstm" else given)])
    for theirs, ours in zip(*found):
        for a, b in zip(ours, theirs, strict=True):
            close(a, b, rtol=0.05, atol=0.05)


def test_what_is_left_to_the_composition(device):
    net, twin, x, there = pair("lstm", device, proj_size=3)
    close(twin(there)[0], net(x)[0])
    net, twin, x, there = pair("gru", device)
    mapped = torch.func.grad(lambda at: twin(at)[0].sum())(there.detach())
    close(mapped, torch.autograd.grad(net(x)[0].sum(), x)[0])
    with pytest.raises(RuntimeError, match="size"):
        twin(there[..., :4])


@pytest.mark.parametrize("sorted_", [True, False])
@pytest.mark.parametrize("batch_first", [True, False])
@pytest.mark.parametrize("kind, options", [*((kind, {}) for kind in KINDS), ("lstm", {"proj_size": 2})])
def test_packed_sequences_are_the_cpus_and_stay(device, kind, options, batch_first, sorted_):
    net = KINDS[kind](4, 3, num_layers=2, bidirectional=True, batch_first=batch_first, **options)
    twin = copy.deepcopy(net).to(device)
    padded = torch.randn(3, 5, 4) if batch_first else torch.randn(5, 3, 4)
    lengths = torch.tensor([5, 3, 2] if sorted_ else [2, 5, 3])
    results = []
    torch_graft.reset_fallbacks()
    for module, x in ((net, padded.clone()), (twin, padded.to(device))):
        x.requires_grad_()
        packed = pack_padded_sequence(x, lengths, batch_first=batch_first, enforce_sorted=sorted_)
        output, *states = flat(module(packed))
        output, _ = pad_packed_sequence(output, batch_first=batch_first)
        sum(result.square().sum() for result in (output, *states)).backward()
        results.append([output, *states, x.grad, *(p.grad for p in module.parameters())])
    assert torch_graft.fallbacks() == []
    for theirs, ours in zip(*results, strict=True):
        close(ours, theirs)
