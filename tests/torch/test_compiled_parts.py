"""Gradients of a tensor that a compiled model took apart: each part's is written to its place, once."""

import pytest
import torch
from torch_graft import _parts

SELECTED = torch.ops.aten.select_backward.default


@pytest.fixture
def sums(monkeypatch):
    """Of each graph, how many gradients of parts were to be added up, and how many are still."""
    seen, plain = [], _parts.place

    def count(graph):
        return sum(node.target is SELECTED for node in graph.nodes)

    def place(graph):
        before = count(graph)
        plain(graph)
        graph.lint()
        seen.append((before, count(graph)))

    monkeypatch.setattr(_parts, "place", place)
    return seen


def heads(x):
    """As attention takes q, k and v apart: behind the gradient is a copy in the order of memory."""
    q, k, v = x.view(4, 3, 2, 8).permute(1, 0, 2, 3)
    return (q * k.tanh()).sum(-1, keepdim=True) * v


def packed(x):
    """As multi-head attention has it: dimensions of size 1 come and go on the way to the copy."""
    q, k, v = x.view(4, 3, 16).unsqueeze(0).transpose(0, -2).squeeze(-2).contiguous()
    return (q * k.tanh()).sum(-1, keepdim=True) * v


def from_the_end(x):
    parts = x.view(4, 3, 16)
    return parts[:, -1] * parts[:, 0].sin() - parts[:, 1] * -0.0  # a gradient of -0, to which zero is added


def not_all(x):
    parts = x.view(4, 3, 16)
    return parts[:, 0] * parts[:, 2]


def one_twice(x):
    parts = x.view(4, 2, 24)
    return parts[:, 0] * parts[:, 1] + torch.ops.aten.select.int(parts, 1, 0)


def bits_of(function, x):
    x = x.clone().requires_grad_()
    function(x).square().sum().backward()
    return x.grad.view(torch.int16 if x.dtype == torch.bfloat16 else torch.int32), x.grad.stride()


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
@pytest.mark.parametrize("function, parts, left", [(heads, 3, 0), (packed, 3, 0), (from_the_end, 3, 0), (not_all, 2, 2), (one_twice, 3, 3)])
def test_gradients_of_parts(device, sums, function, parts, left, dtype):
    torch._dynamo.reset()
    x = torch.randn(4, 48, generator=torch.Generator().manual_seed(1)).to(device, dtype)
    compiled = torch.compile(function, backend="graft")
    for _ in range(2):
        (ours, strides), (theirs, expected) = bits_of(compiled, x), bits_of(function, x)
        assert torch.equal(ours, theirs) and strides == expected
    assert sums[-1] == (parts, left)


def test_gradients_of_parts_of_any_number(device):
    """Sizes that are symbols: the sum stays as it is."""
    compiled = torch.compile(heads_of_any, backend="graft", dynamic=True)
    for rows in (3, 5, 8):
        x = torch.randn(rows, 48, device=device)
        assert torch.equal(bits_of(compiled, x)[0], bits_of(heads_of_any, x)[0])


def heads_of_any(x):
    q, k, v = x.view(-1, 3, 2, 8).permute(1, 0, 2, 3)
    return (q * k).sum(-1, keepdim=True) * v
