"""Memory of compiled training steps: what they need at their peak, and that nobody who holds a tensor sees it overwritten."""

import copy

import pytest
import torch
from torch import nn


class Block(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.before = nn.LayerNorm(width)
        self.mlp = nn.Sequential(nn.Linear(width, 4 * width), nn.GELU(), nn.Linear(4 * width, width))

    def forward(self, x):
        return x + self.mlp(self.before(x))


def network():
    torch.manual_seed(1)
    return nn.Sequential(*(Block(64) for _ in range(6))).to("graft")


def peak_of(run, model, x):
    """Above what is there before a step, of the second step."""
    for _ in range(2):
        for parameter in model.parameters():
            parameter.grad = None
        before = torch.graft.memory_allocated()
        torch.graft.reset_peak_memory_stats()
        run(x).square().mean().backward()
        peak = torch.graft.max_memory_allocated() - before
    return peak


def test_a_compiled_step_needs_less_memory():
    x = torch.randn(2048, 64, device="graft")
    eager, compiled = network(), network()
    theirs, ours = peak_of(eager, eager, x), peak_of(torch.compile(compiled), compiled, x)
    assert ours <= 0.8 * theirs, (ours, theirs)
    for a, b in zip(compiled.parameters(), eager.parameters()):
        assert torch.equal(a.grad, b.grad)


def step(x, w):
    h = (x @ w).exp()
    return h, (h.sin() * h).cos().sum()


def inputs():
    torch.manual_seed(2)
    return torch.randn(64, 64, device="graft"), torch.randn(64, 64, device="graft", requires_grad=True)


@pytest.mark.parametrize("keep", ["the output", "a view of it"])
def test_what_is_held_keeps_its_values(keep):
    x, w = inputs()
    compiled = torch.compile(step, backend="graft")
    for _ in range(2):
        w.grad = None
        h, loss = compiled(x, w)
        expected = h.detach().clone()
        held, rows = (h, expected) if keep == "the output" else (h.detach()[3:], expected[3:])
        del h
        loss.backward()
        assert torch.equal(held, rows)
    gradient, w.grad = w.grad, None
    step(x, w)[1].backward()
    assert torch.equal(gradient, w.grad)


def test_forwards_may_be_ahead_of_backwards():
    """Two forwards, then their backwards: each has its own saved tensors."""
    x, w = inputs()
    other = copy.deepcopy(w)
    compiled = torch.compile(step, backend="graft")
    losses = [compiled(scale * x, w)[1] for scale in (1, 0.5)]
    expected = [step(scale * x, other)[1] for scale in (1, 0.5)]
    for loss in (*losses, *expected):
        loss.backward()
    assert torch.equal(w.grad, other.grad)
