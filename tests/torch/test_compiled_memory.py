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


class Images(nn.Module):
    """Convolutions, each with a batch normalization and its activation behind it."""

    def __init__(self, width):
        super().__init__()
        self.layers = nn.Sequential(*(nn.Sequential(nn.Conv2d(width, width, 3, padding=1), nn.BatchNorm2d(width), nn.ReLU())
                                      for _ in range(6)))  # fmt: skip

    def forward(self, x):
        return self.layers(x)


def images():
    torch.manual_seed(1)
    return Images(16).to("graft")


def test_activations_behind_batch_norms_are_not_kept():
    """They are made again from what the norm's gradient needs anyway; running statistics move on once."""
    x = torch.randn(32, 16, 32, 32, device="graft")
    eager, compiled = images(), images()
    theirs, ours = peak_of(eager, eager, x), peak_of(torch.compile(compiled), compiled, x)
    assert ours <= 0.8 * theirs, (ours, theirs)
    for (name, a), (_, b) in zip(compiled.named_parameters(), eager.named_parameters()):
        assert torch.equal(a.grad, b.grad), name
    for (name, a), (_, b) in zip(compiled.named_buffers(), eager.named_buffers()):
        assert torch.equal(a, b), name


def test_a_backward_after_two_forwards_of_a_batch_norm():
    """The second one has moved the running statistics, which nothing of the first one's gradient reads."""
    models, losses = [images(), images()], []
    x = torch.randn(4, 16, 8, 8, device="graft")
    for model, run in zip(models, (models[0], torch.compile(models[1]))):
        first, _ = run(x).square().mean(), run(2 * x)
        first.backward()
        losses.append(first)
    assert torch.equal(*losses)
    for a, b in zip(models[0].parameters(), models[1].parameters()):
        assert torch.equal(a.grad, b.grad)


@pytest.mark.parametrize("seen", [False, True])
def test_indices_of_a_pooling_are_kept_small(seen):
    x = torch.randn(16, 16, 64, 64, device="graft")

    def pooled(x):
        values, indices = nn.functional.max_pool2d(x.exp(), 2, return_indices=True)
        return values, (indices if seen else None)

    kept, gradients = [], []
    for run in (pooled, torch.compile(pooled)):
        for _ in range(2):
            leaf = x.clone().requires_grad_()
            torch.graft.synchronize()
            before = torch.graft.memory_allocated()
            values, indices = run(leaf)
            after = torch.graft.memory_allocated() - before
            values.square().sum().backward()
        kept.append(after)
        gradients.append((leaf.grad, values, indices))
    assert torch.equal(gradients[0][0], gradients[1][0]) and torch.equal(gradients[0][1], gradients[1][1])
    if seen:
        assert torch.equal(gradients[0][2], gradients[1][2]) and gradients[1][2].dtype == torch.int64
    else:
        assert kept[1] <= kept[0] - 16 * 16 * 32 * 32 * 6, kept


def test_the_gradient_of_a_cross_entropy_lies_over_what_was_kept():
    x, target = torch.randn(512, 2048, device="graft"), torch.arange(512, device="graft")
    loss = torch.compile(lambda w: nn.functional.cross_entropy(x * w, target))
    eager, compiled = (torch.ones(2048, device="graft", requires_grad=True) for _ in range(2))
    for _ in range(2):
        compiled.grad = None
        value = loss(compiled)
        before = torch.graft.memory_allocated()
        torch.graft.reset_peak_memory_stats()
        value.backward()
        peak = torch.graft.max_memory_allocated() - before
    nn.functional.cross_entropy(x * eager, target).backward()
    assert torch.equal(eager.grad, compiled.grad)
    assert peak < x.numel() * x.element_size(), peak


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
