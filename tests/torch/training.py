"""Two training steps on the device, held against the CPU in f64.

The device computes in f32, so it may be off. How far is measured, not chosen: by what PyTorch's own f32 on the CPU is
off for the same model, times four."""

import contextlib
import copy

import torch
import torch_graft
from torch import nn
from torch.overrides import TorchFunctionMode

SLACK = 4
FLOOR = 16 * torch.finfo(torch.float32).eps  # below it, the CPU's f32 was lucky

OPTIMIZERS = {
    "sgd": lambda p: torch.optim.SGD(p, lr=0.05, momentum=0.9, nesterov=True, weight_decay=0.01),
    "adamw": lambda p: torch.optim.AdamW(p, lr=0.01),
    "adamw_fused": lambda p: torch.optim.AdamW(p, lr=0.01, fused=True),
    "adam_loop": lambda p: torch.optim.Adam(p, lr=0.01, foreach=False),
}


class Widened(TorchFunctionMode):
    """Where a model asks for f32 itself (a softmax, a norm), it gets f64: what it computes then is exact throughout."""

    def __torch_function__(self, function, types, args=(), kwargs=None):
        def wide(value):
            return torch.float64 if value is torch.float32 else value

        if function is torch.Tensor.float:
            function = torch.Tensor.double
        return function(*map(wide, args), **{name: wide(value) for name, value in (kwargs or {}).items()})


def moved(model, batch, where, dtype):
    """A copy of the model and its batch, there."""
    batch = {name: t.to(where, dtype) if t.is_floating_point() else t.to(where) for name, t in batch.items()}
    return copy.deepcopy(model).to(where, dtype), batch


def fetched(results):
    return {name: value.detach().cpu().double() for name, value in results.items()}


def step(model, batch, forward):
    """Logits, loss and gradients. forward(model, batch) gives the logits and the loss."""
    logits, loss = forward(model, batch)
    loss.backward()
    gradients = {f"gradient of {name}": p.grad.clone() for name, p in model.named_parameters() if p.grad is not None}
    return {"logits": logits, "loss": loss} | gradients


def two_steps(model, batch, forward, where, dtype, optimizer):
    """What both steps give, and all state at the end; as f64 on the CPU."""
    model, batch = moved(model, batch, where, dtype)
    steps = optimizer(model.parameters())
    with Widened() if dtype is torch.float64 else contextlib.nullcontext():
        first = step(model, batch, forward)
        nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        steps.step()
        steps.zero_grad()
        logits, loss = forward(model, batch)
        loss.backward()
        steps.step()
    return fetched(first | {"second logits": logits, "second loss": loss} | model.state_dict())


def error(results, exact):
    """The largest error of each result, relative to the largest value. What is zero but for rounding, as the gradient
    of a bias of attention's keys, has no size of its own and is measured against the largest of all."""
    sizes = {name: value.abs().max() for name, value in exact.items() if value.numel()}
    largest = max(sizes.values()) or 1.0
    return {
        name: ((results[name] - exact[name]).abs().max() / (size if size > 1e-12 * largest else largest)).item()
        for name, size in sizes.items()
    }


def judge(ours, theirs, exact):
    """Our results may be SLACK times as far from the exact ones as those of the CPU."""
    allowed = {name: SLACK * max(e, FLOOR) for name, e in error(theirs, exact).items()}
    worse = {name: (e, allowed[name]) for name, e in error(ours, exact).items() if not e <= allowed[name]}
    assert not worse, f"(error here, {SLACK} times that of the CPU): {worse}"


def check_two_steps(model, batch, forward, device, optimizer):
    torch_graft.reset_fallbacks()
    ours = two_steps(model, batch, forward, device, torch.float32, optimizer)
    assert torch_graft.fallbacks() == [], "every op of these models has a kernel on the device"
    theirs, exact = (two_steps(model, batch, forward, "cpu", t, optimizer) for t in (torch.float32, torch.float64))
    judge(ours, theirs, exact)
