"""torch.compile on the device: what a program writes to between forward and backward is noticed, as in eager mode, where
the memory is what the backward keeps, under another tensor or another view; and what the forward writes itself is kept."""

import pytest
import torch
from torch import nn

NOTICED = "modified by an inplace operation"
KEEP_RESULTS = {
    "exp": torch.exp,
    "tanh": torch.tanh,
    "sigmoid": torch.sigmoid,
    "softmax": lambda x: x.softmax(0),
    "log_softmax": lambda x: x.log_softmax(0),
}


@pytest.mark.parametrize("name", KEEP_RESULTS)
@pytest.mark.parametrize("view", [False, True])
def test_a_result_that_is_kept_is_written_to(device, name, view):
    for run in (KEEP_RESULTS[name], torch.compile(KEEP_RESULTS[name])):
        x = torch.linspace(-1, 1, 4, device=device).requires_grad_()
        y = run(x)
        (y[:2] if view else y).mul_(3)
        with pytest.raises(RuntimeError, match=NOTICED):
            y.sum().backward()


@pytest.mark.parametrize("written", ["input", "parameter"])
def test_an_input_that_is_kept_as_a_view_is_written_to(device, written):
    def function(a, w):
        return (a @ w).sin()

    replayed = torch.compile(function, mode="reduce-overhead")
    for _ in range(4):
        replayed(torch.randn(4, 6, device=device), torch.randn(6, 3, device=device, requires_grad=True)).sum().backward()
    for run in (function, torch.compile(function), replayed):
        a = torch.randn(4, 6, device=device).requires_grad_(written == "parameter")
        w = torch.randn(6, 3, device=device).requires_grad_()
        y = run(a, w)
        with torch.no_grad():
            (a if written == "input" else w).mul_(2)
        with pytest.raises(RuntimeError, match=NOTICED):
            y.sum().backward()


def test_what_is_not_kept_may_be_written_to(device):
    """The gradient of a product by a number needs nothing of it; a clone is other memory."""
    gradients = []
    for run in (lambda x: (x * 2, x.exp().clone()), torch.compile(lambda x: (x * 2, x.exp().clone()))):
        x = torch.linspace(-1, 1, 4, device=device).requires_grad_()
        doubled, grown = run(x)
        doubled.detach().zero_()
        (doubled.sum() + grown.sum()).backward()
        gradients.append(x.grad)
    assert torch.equal(*gradients)


def test_results_in_inference_mode_have_no_versions(device):
    x = torch.randn(3, 4, device=device)
    with torch.inference_mode():
        y, turned = torch.compile(lambda x: (x.exp(), x.exp().t()))(x)
        y.mul_(2)
    assert y.is_inference() and turned.is_inference()


def twice(norm, x):
    return norm(x).sin() + norm(x)


def around_a_convolution(norm, x):
    return nn.functional.conv1d(norm(x), WEIGHTS.to(x.device)) + norm(x)


WEIGHTS = torch.randn(3, 3, 1, generator=torch.Generator().manual_seed(3))


@pytest.mark.parametrize("function", [twice, around_a_convolution])
def test_a_batch_norm_of_one_input_twice(device, function):
    """Each moves the running statistics on, and both give the same."""
    given, ours = [], None
    for compiles in (False, True):
        norm = nn.BatchNorm1d(3).to(device)
        x = torch.linspace(-2, 5, 4 * 3 * 7, device=device).view(4, 3, 7).sin().requires_grad_()
        run = torch.compile(function) if compiles else function
        y = run(norm, x)
        y.square().sum().backward()
        ours = [y.detach(), x.grad, norm.weight.grad, norm.bias.grad, *norm.buffers()]
        given.append(ours)
    for eager, compiled in zip(*given):
        assert torch.equal(eager, compiled)


class Counting(nn.Module):
    """Its buffer is written in the forward, and the gradient of x takes what it became, or what it was."""

    def __init__(self, counts):
        super().__init__()
        self.counts = counts
        self.register_buffer("n", torch.full((2, 2), 0.5))

    def forward(self, x):
        return self.counts(x, self.n)


def becomes(x, n):
    n += 1
    return x.tanh() * n


def becomes_by_a_view(x, n):
    n.t().mul_(torch.tensor(3.0, device=n.device))
    return (x @ n.t()).tanh() * n[0]


def was(x, n):
    y = x * n.clone()
    n.add_(2)
    return y.exp() * n


@pytest.mark.parametrize("dynamic", [False, True])
@pytest.mark.parametrize("counts", [becomes, becomes_by_a_view, was])
def test_gradients_beside_a_buffer_that_is_written(device, counts, dynamic):
    """PyTorch's own compilers compute again what a buffer becomes, from what it became (docs/found.md)."""
    torch._dynamo.reset()
    eager, model = Counting(counts), Counting(counts).to(device)
    compiled = torch.compile(model, dynamic=dynamic)
    for _ in range(3):
        x = torch.tensor([[0.25, -0.5], [0.125, 0.75]], requires_grad=True)
        ours = x.detach().to(device).requires_grad_()
        eager(x).sum().backward()
        compiled(ours).sum().backward()
        torch.testing.assert_close(model.n.cpu(), eager.n)
        torch.testing.assert_close(ours.grad.cpu(), x.grad, rtol=1e-5, atol=1e-6)
