"""Optimizer steps on graft:0 against PyTorch's CPU: optimizers.py.

Launches (kernels enqueued) and time of a step, medians of alternating runs; the ratio is ours / the CPU's. Of steps that
torch.compile made the CPU's are eager. Fails where foreach AdamW over 100 parameters takes more than 20 launches.
"""

import os
import statistics
import sys
import time
from functools import partial

os.environ.setdefault("GRAFT_FALLBACK", "error")

import torch

LAUNCHES_MAX = 20
ROUNDS = 15
ROUND_SECONDS = 0.02

SHAPES = {
    "100 of many sizes": [
        (64,), (64, 64), (16, 16, 3, 3), (128,), (128, 64), (1,), (10, 128), (256, 256), (17,), (33, 5),
    ] * 10,
    "100 of 64": [(64,)] * 100,
    "12 of a million": [(1024, 1024)] * 12,
}  # fmt: skip
FOREACH, FUSED = "AdamW, foreach", "AdamW, fused"
OPTIMIZERS = {
    FOREACH: lambda p: torch.optim.AdamW(p, foreach=True),
    "AdamW, foreach, capturable": lambda p: torch.optim.AdamW(p, foreach=True, capturable=p[0].device.type != "cpu"),
    FUSED: lambda p: torch.optim.AdamW(p, fused=True),
    "SGD with momentum, foreach": lambda p: torch.optim.SGD(p, lr=1e-3, momentum=0.9, foreach=True),
    "SGD with momentum, fused": lambda p: torch.optim.SGD(p, lr=1e-3, momentum=0.9, fused=True),
}
COMPILED = "AdamW, foreach, capturable", "SGD with momentum, foreach"
OTHERS = {  # calls beside a step: a function of the parameters
    "clip_grad_norm_": lambda p: lambda: torch.nn.utils.clip_grad_norm_(p, 1e9, foreach=True),
    "clip_grad_value_": lambda p: lambda: torch.nn.utils.clip_grad_value_(p, 1e9, foreach=True),
    "zero_grad(set_to_none=False)": lambda p: partial(torch.optim.SGD(p, foreach=True).zero_grad, set_to_none=False),
}


def parameters(shapes, device):
    torch.manual_seed(0)
    made = [torch.randn(shape).to(device).requires_grad_() for shape in shapes]
    for p in made:
        p.grad = torch.randn(p.shape).to(device)
    return made


def launches(call):
    import torch_graft

    call()
    call()  # the first makes the state
    before = torch_graft.statistics("graft:0").launches
    call()
    return torch_graft.statistics("graft:0").launches - before


def timed(call, count, synchronize):
    start = time.perf_counter()
    for _ in range(count):
        call()
    synchronize()
    return (time.perf_counter() - start) / count


def medians(sides):
    """Milliseconds of each call in turn; sides are pairs of a call and what waits for it."""
    counts = [max(1, int(ROUND_SECONDS / timed(call, 3, wait))) for call, wait in sides]
    times = [[timed(call, count, wait) for (call, wait), count in zip(sides, counts)] for _ in range(ROUNDS)]
    return [statistics.median(column) * 1e3 for column in zip(*times)]


def compiled(make):
    """The step, which torch.compile makes one graph of on our side."""

    def of(p):
        optimizer = make(p)
        on_cpu = p[0].device.type == "cpu"
        return optimizer.step if on_cpu else torch.compile(lambda: optimizer.step(), backend="graft")

    return of


def row(name, make, shapes):
    ours, theirs = (make(parameters(shapes, device)) for device in ("graft:0", "cpu"))
    count = launches(ours)
    here, there = medians([(ours, torch.accelerator.synchronize), (theirs, lambda: None)])
    print(f"  {name:38}{count:10}{here:12.3f}{there:12.3f}{here / there:9.2f}", flush=True)
    return count


def main():
    torch.set_num_threads(2)
    most = 0  # launches
    for title, shapes in SHAPES.items():
        print(f"{title:40}{'launches':>10}{'graft, ms':>12}{'CPU, ms':>12}{'ratio':>9}")
        for name, make in OPTIMIZERS.items():
            count = row(name, lambda p: make(p).step, shapes)
            if name == FOREACH and len(shapes) == 100:
                most = max(most, count)
        for name in COMPILED:
            torch._dynamo.reset()
            row(f"{name}, compiled", compiled(OPTIMIZERS[name]), shapes)
        for name, make in OTHERS.items():
            row(name, make, shapes)
    print(f"{FOREACH}, 100 parameters: {most} launches a step, wanted: at most {LAUNCHES_MAX}")
    return most > LAUNCHES_MAX


if __name__ == "__main__":
    sys.exit(main())
