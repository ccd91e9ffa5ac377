"""Replays of captured work against eager mode: replay.py [--turns N]

The character GPT of docs/examples/torch in small (2 layers, width 32, batch 4 times 16 letters, so that the host's work
counts): inference of one row and a training step, eagerly and as a torch.graft.Graph, on graft:0, in turns in one
process. Printed: the least and the median time of each, the time until all is submitted, and the calls of the plugin in
a replay.
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


def inference(device):
    model = char_gpt.GPT(64, 2, 32, 2, 16).to(device).eval()
    window = torch.randint(64, (1, 16)).to(device)

    @torch.no_grad()
    def step():
        return model(window)

    return step


def training(device):
    model = char_gpt.GPT(64, 2, 32, 2, 16).to(device)
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3, fused=True)
    window = torch.randint(64, (4, 17)).to(device)

    def step():
        optimizer.zero_grad()
        loss = F.cross_entropy(model(window[:, :-1]).flatten(0, 1), window[:, 1:].flatten())
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


def compare(name, step, turns):
    with torch.graft.stream(torch.graft.Stream()):
        for _ in range(3):
            step()
    torch.graft.synchronize()
    graph = torch.graft.Graph()
    with torch.graft.graph(graph):
        step()
    eager, replayed = [], []
    for _ in range(turns):
        eager.append(timed(step))
        replayed.append(timed(graph.replay))
    print(f"{name}: {graph.count()} calls of the plugin a replay")
    for what, times in (("eager", eager), ("replay", replayed)):
        hosts, wholes = zip(*times, strict=True)
        print(
            f"  {what:<7} least {min(wholes):7.3f} ms, median {statistics.median(wholes):7.3f} ms; "
            f"submitted after {min(hosts):7.3f} ms"
        )
    print(f"  eager / replay, the least of each: {min(t for _, t in eager) / min(t for _, t in replayed):.2f}")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--turns", type=int, default=20)
    turns = parser.parse_args().turns
    torch.manual_seed(1)
    for name, make in (("inference of one row", inference), ("a training step", training)):
        compare(name, make(torch.device("graft", 0)), turns)


if __name__ == "__main__":
    main()
