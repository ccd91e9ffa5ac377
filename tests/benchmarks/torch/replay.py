"""Compiled and captured work against eager mode: replay.py [--turns N] [--only NAME]

What the host costs: a chain of 8 linear layers of width 32 with one row, and the character GPT of docs/examples/torch in
small (2 layers, width 32), inference of one row and a training step of batch 4 times 16 letters; eagerly, under
torch.compile, under torch.compile(mode="reduce-overhead") and as a torch.graft.Graph, on graft:0, in turns in one process.
Printed: the least and the median time of each, the time until all is submitted, and eager's least over its own.
"""

import argparse
import statistics
import sys
import time
from pathlib import Path

import torch
from torch.nn import functional as F

sys.path.insert(0, str(Path(__file__).resolve().parents[3] / "docs" / "examples" / "torch"))
import char_gpt  # noqa: E402

REPEAT = 10  # calls of a turn
WARM_UP = 5
WAYS = {"eager": None, "compiled": "default", "reduce-overhead": "reduce-overhead"}


def as_said(function, mode):
    return torch.compile(function, mode=mode) if mode else function


def chain(device, mode):
    layers = [layer for _ in range(8) for layer in (torch.nn.Linear(32, 32), torch.nn.GELU())]
    model = as_said(torch.nn.Sequential(*layers).to(device).eval(), mode)
    x = torch.randn(1, 32, device=device)
    return torch.no_grad()(lambda: model(x))


def inference(device, mode):
    model = as_said(char_gpt.GPT(64, 2, 32, 2, 16).to(device).eval(), mode)
    window = torch.randint(64, (1, 16)).to(device)
    return torch.no_grad()(lambda: model(window))


def training(device, mode):
    model = char_gpt.GPT(64, 2, 32, 2, 16).to(device)
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3, fused=True)
    window = torch.randint(64, (4, 17)).to(device)

    def loss_of(x, y):
        return F.cross_entropy(model(x).flatten(0, 1), y.flatten())

    forward = as_said(loss_of, mode)

    def step():
        optimizer.zero_grad()
        loss = forward(window[:, :-1], window[:, 1:])
        loss.backward()
        optimizer.step()
        return loss

    return step


def timed(call):
    """Milliseconds a call: until all is submitted, and until all is done."""
    torch.graft.synchronize()
    start = time.perf_counter()
    for _ in range(REPEAT):
        call()
    submitted = time.perf_counter() - start
    torch.graft.synchronize()
    return submitted * 1000 / REPEAT, (time.perf_counter() - start) * 1000 / REPEAT


def captured(step):
    with torch.graft.stream(torch.graft.Stream()):
        for _ in range(WARM_UP):
            step()
    torch.graft.synchronize()
    graph = torch.graft.Graph()
    with torch.graft.graph(graph):
        step()
    return graph


def compare(name, make, turns):
    torch._dynamo.reset()
    device = torch.device("graft", 0)
    calls = {way: make(device, mode) for way, mode in WAYS.items()}
    for call in calls.values():
        for _ in range(WARM_UP):
            call()
    graph = captured(make(device, None))
    calls["captured by hand"] = graph.replay
    times = {way: [] for way in calls}
    for _ in range(turns):
        for way, call in calls.items():
            times[way].append(timed(call))
    print(f"{name}: {graph.count()} calls of the plugin in what is captured by hand")
    eager = min(whole for _, whole in times["eager"])
    for way, pairs in times.items():
        hosts, wholes = zip(*pairs, strict=True)
        print(
            f"  {way:<16} least {min(wholes):7.3f} ms, median {statistics.median(wholes):7.3f} ms; "
            f"submitted after {min(hosts):7.3f} ms; eager is {eager / min(wholes):.2f} times this"
        )


PARTS = {"8 layers": chain, "inference of one row": inference, "a training step": training}


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--turns", type=int, default=20)
    parser.add_argument("--only", choices=PARTS)
    arguments = parser.parse_args()
    torch.manual_seed(1)
    for name, make in PARTS.items():
        if arguments.only in (None, name):
            compare(name, make, arguments.turns)


if __name__ == "__main__":
    main()
