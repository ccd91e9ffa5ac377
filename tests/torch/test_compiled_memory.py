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


def pooled_network(window, norm):
    torch.manual_seed(1)
    layers = [nn.Conv2d(3, 16, 3, padding=1), *norm, nn.ReLU(), nn.MaxPool2d(*window)]
    return nn.Sequential(*layers).to("graft")


@pytest.mark.parametrize("norm", [[], [nn.GroupNorm(4, 16)], [nn.BatchNorm2d(16)]], ids=["plain", "group", "batch"])
@pytest.mark.parametrize("window", [(2,), (3, 2, 1), (3, 1, 1)], ids=str)
def test_the_gradient_of_a_pooled_activation(window, norm):
    x = torch.randn(8, 3, 64, 64, device="graft")
    x[0, 0, :9, :9] = torch.nan
    x[1, 1] = 0
    eager = pooled_network(window, norm)
    ours, gradients = copy.deepcopy(eager), []

    def loss_of(model, x):
        result = model(x)
        return (result * torch.arange(1.0, 1 + result.numel(), device="graft").view_as(result).sin()).sum()

    for model, run in ((eager, loss_of), (ours, torch.compile(loss_of))):
        for _ in range(2):
            leaf = x.clone().requires_grad_()
            model.zero_grad()
            run(model, leaf).backward()
        gradients.append([leaf.grad, *[parameter.grad for parameter in model.parameters()]])
    for a, b in zip(*gradients):
        assert torch.equal(a.view(torch.int32), b.view(torch.int32))


@pytest.mark.parametrize("view", [False, True])
def test_what_a_pooling_gives_the_program_may_be_written_to(view):
    x, gradients = torch.randn(2, 3, 8, 8, device="graft"), []
    for compiles in (False, True):
        model = pooled_network((3, 2, 1), [nn.BatchNorm2d(16)])
        leaf = x.clone().requires_grad_()
        run = torch.compile(lambda x: model(x).flatten(1) if view else model(x)) if compiles else model
        run(leaf).add_(1).square().sum().backward()
        gradients.append([leaf.grad, *[parameter.grad for parameter in model.parameters()]])
    for a, b in zip(*gradients):
        assert torch.equal(a, b)


def test_what_a_pooled_activation_gave_is_not_made_again():
    """Behind a norm: beside what the forward kept there are the pooling's gradient and the norm's, of its size."""
    torch._dynamo.reset()  # sizes are those of this test
    model = pooled_network((2,), [nn.GroupNorm(4, 16)])[1:]
    run, x = torch.compile(lambda x: model(x).square().sum()), torch.randn(16, 16, 64, 64, device="graft")
    for _ in range(2):
        leaf = x.clone().requires_grad_()
        loss = run(leaf)
        before = torch.graft.memory_allocated()
        torch.graft.reset_peak_memory_stats()
        loss.backward()
        peak = torch.graft.max_memory_allocated() - before
    assert peak < 1.9 * x.nbytes, (peak, x.nbytes)


@pytest.mark.parametrize("reduction", ["mean", "sum"])
def test_the_logarithm_of_a_cross_entropy_is_not_kept(reduction):
    x, target = torch.randn(512, 2048, device="graft"), torch.arange(512, device="graft")
    target[::7] = -100

    def loss_of(x):
        return nn.functional.cross_entropy(x, target, reduction=reduction)

    compiled = torch.compile(loss_of)
    for _ in range(2):
        leaf = x.clone().requires_grad_()
        before = torch.graft.memory_allocated()
        torch.graft.reset_peak_memory_stats()
        loss = compiled(leaf)
        peak, kept = torch.graft.max_memory_allocated() - before, torch.graft.memory_allocated() - before
        loss.backward()
    assert peak < x.nbytes / 8 and kept < x.nbytes / 8, (peak, kept)
    theirs = x.clone().requires_grad_()
    eager = loss_of(theirs)
    eager.backward()
    assert torch.equal(loss, eager) and torch.equal(leaf.grad, theirs.grad)


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
