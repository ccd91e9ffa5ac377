"""What the tests of torch.compile with libgraft's graphs share: what a program consists of, and a comparison with eager."""

import copy

import torch
from torch.utils import _pytree as pytree
from torch_graft import _program


def parts(steps):
    """What runs, in its order: "graph" for a piece that was recorded, else the name of the op called beside graphs."""
    names = []
    for step in steps:
        if not isinstance(step, _program._Piece):
            names.append(getattr(step.node.target, "__name__", str(step.node.target)))
        elif step.parts:
            names += parts(step.parts)
        else:
            names.append("graph" if step.variants else "never recorded")
    return names


def beside_graphs(programs):
    """The ops that ran eagerly."""
    return [name for program in programs for name in parts(program.steps) if name not in ("graph", "getitem")]


def graphs_of(programs):
    """How many were recorded."""

    def count(steps):
        return sum(
            count(step.parts) if step.parts else sum(len(variant.cache) for variant in step.variants.values())
            for step in steps
            if isinstance(step, _program._Piece)
        )

    return sum(count(program.steps) for program in programs)


def tensors(tree):
    return [leaf for leaf in pytree.tree_leaves(tree) if isinstance(leaf, torch.Tensor)]


def assert_same(a, b):
    a, b = tensors(a), tensors(b)
    assert len(a) == len(b)
    for x, y in zip(a, b):
        assert (x.dtype, x.shape, x.stride(), x.device) == (y.dtype, y.shape, y.stride(), y.device)
        assert torch.equal(x, y), (x, y)


def assert_as_eager(function, *args, times=2, **options):
    """To the bit: results, strides, and what became of the arguments and of the generator; twice, from a graph at last."""
    ours, theirs = copy.deepcopy(args), copy.deepcopy(args)
    compiled = torch.compile(function, backend="graft", **options)
    for step in range(times):
        torch.manual_seed(step)
        expected = function(*theirs), torch.rand(2, device="graft")
        torch.manual_seed(step)
        result = compiled(*ours), torch.rand(2, device="graft")
        assert_same((result, ours), (expected, theirs))
    return result[0]


def train(model, run, batches, optimizer=torch.optim.SGD, loss=None, **options):
    """Steps of training; the losses."""
    loss = loss or (lambda result, target: (result.float() - target).square().mean())
    optimizer = optimizer(model.parameters(), **options)
    torch.manual_seed(7)
    losses = []
    for x, y in batches:
        optimizer.zero_grad()
        value = loss(run(x), y)
        value.backward()
        optimizer.step()
        losses.append(value.detach())
    return torch.stack(losses)


def assert_trains_as_eager(model, batches, options=None, **training):
    """Losses and all state, bit for bit."""
    eager, ours = copy.deepcopy(model), copy.deepcopy(model)
    expected = train(eager, eager, batches, **training)
    losses = train(ours, torch.compile(ours, backend="graft", **(options or {})), batches, **training)
    assert losses.isfinite().all() and losses[-1] != losses[0]
    assert_same((losses, ours.state_dict()), (expected, eager.state_dict()))
    return ours
