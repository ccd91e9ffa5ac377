"""Losses that no usual model has, and windows (unfold): forward and backward on the device alone, held against the CPU."""

import pytest
import torch
import torch_graft
from torch.nn import functional as F


def margins(scores, classes):
    weight = torch.linspace(0.5, 1.5, scores.shape[1], device=scores.device)
    yield F.multi_margin_loss(scores, classes)
    yield F.multi_margin_loss(scores, classes, p=2, margin=0.5, weight=weight, reduction="sum")


def labels(scores, classes):
    target = torch.full_like(scores, -1, dtype=torch.int64)
    target[:, 0] = classes
    target[1, 1] = (classes[1] + 1) % scores.shape[1]
    yield F.multilabel_margin_loss(scores, target)
    yield F.multilabel_margin_loss(scores, target, reduction="none").square()


def signs(scores, classes):
    yield F.soft_margin_loss(scores, (classes % 2 * 2 - 1)[:, None].expand_as(scores).to(scores.dtype))
    yield F.soft_margin_loss(scores, scores.detach().sign(), reduction="sum")


def windows(scores, classes):
    yield scores.unfold(1, 3, 1).square().mean(-1)
    yield scores.unfold(0, 2, 2).mul(2).sum(-1)


@pytest.mark.parametrize("losses", [margins, labels, signs, windows], ids=lambda f: f.__name__)
def test_on_the_device_alone(device, losses):
    scores, classes = torch.randn(6, 5), torch.randint(0, 5, (6,))

    def run(where):
        x = scores.to(where).requires_grad_()
        results = [loss.sum() for loss in losses(x, classes.to(where))]
        return [part.detach().cpu() for part in results + list(torch.autograd.grad(sum(results), x))]

    expected = run("cpu")
    torch_graft.reset_fallbacks()
    torch.testing.assert_close(run(device), expected)
    assert torch_graft.fallbacks() == []


def test_equal(device):
    x = torch.arange(6.0, device=device)
    torch_graft.reset_fallbacks()
    assert torch.equal(x, x.clone()) is True and torch.equal(x, x + 1) is False and torch.equal(x, x[:3]) is False
    assert torch_graft.fallbacks() == []
