"""torch.compile on a device: a small GPT with dropout is trained compiled and eagerly, side by side: compile.py [--steps N] ...

Both get the same text and the same random numbers, and their losses are equal to the bit. At the end stand the times of a
step of both, and what the host's thread takes to ask a small network for one row, which is most of the time there.
"""

import argparse
import statistics
import time

import torch
import torch.nn.functional as F
import torch_graft
from char_gpt import GPT, corpus
from torch import nn


class Trained:
    """A model, how it is run, and how long its steps take."""

    def __init__(self, letters, options, compiled):
        torch.manual_seed(1)
        sizes = options.layers, options.width, options.heads, options.context
        self.model = GPT(letters, *sizes, dropout=0.1).to(options.device)
        self.run = torch.compile(self.loss_of) if compiled else self.loss_of
        self.optimizer = torch.optim.AdamW(self.model.parameters(), lr=1e-3, fused=True)
        self.losses, self.seconds = [], []

    def loss_of(self, window):
        logits = self.model(window[:, :-1])
        return F.cross_entropy(logits.flatten(0, 1), window[:, 1:].flatten())

    def step(self, number, window):
        torch.manual_seed(number)  # both draw the same numbers for dropout
        start, launches = time.perf_counter(), launches_of(window.device)
        loss = self.run(window)
        loss.backward()
        self.launches = launches_of(window.device) - launches
        self.optimizer.step()
        self.optimizer.zero_grad()
        self.losses.append(loss.item())
        self.seconds.append(time.perf_counter() - start)


def launches_of(device):
    """How many kernels the plugin has launched; 0 where it does not count."""
    counted = torch_graft.statistics(device)
    return counted.launches if counted else 0


def train(options):
    ids, letters = corpus()
    eager, compiled = (Trained(len(letters), options, way) for way in (False, True))
    draw = torch.Generator().manual_seed(2)
    firsts = torch.randint(len(ids) - options.context - 1, (options.steps, options.batch), generator=draw)
    for number, first in enumerate(firsts):
        window = ids[first[:, None] + torch.arange(options.context + 1)].to(options.device)
        for each in (eager, compiled):
            each.step(number, window)
    print(f"loss {compiled.losses[0]:.4f} to {compiled.losses[-1]:.4f} compiled, {eager.losses[-1]:.4f} eagerly")
    print(f"losses of all steps: {'equal to the bit' if compiled.losses == eager.losses else 'different'}")
    print(f"kernels for a loss and its gradient: {eager.launches} eagerly, {compiled.launches} compiled")
    print(f"the first step, in which it is compiled: {compiled.seconds[0]:.1f} s")
    tell("a step", eager.seconds[2:], compiled.seconds[2:])


def ask(options):
    model = nn.Sequential(*[layer for _ in range(8) for layer in (nn.Linear(32, 32), nn.GELU())])
    model = model.to(options.device).eval()
    compiled = torch.compile(model)
    row = torch.randn(1, 32, device=options.device)
    seconds = {model: [], compiled: []}
    with torch.no_grad():
        compiled(row)
        for _ in range(options.rows):
            for way in (model, compiled):
                start = time.thread_time()
                for _ in range(20):
                    result = way(row)
                seconds[way].append((time.thread_time() - start) / 20)
                result.tolist()
    tell("the host's part of a row through 8 small layers", seconds[model], seconds[compiled])


def tell(what, eager, compiled):
    if not eager:  # of two steps the first compiles, and the second may
        print(f"{what}: not timed, give --steps 3 or more")
        return
    for name, of in [("median", statistics.median), ("least", min)]:
        print(f"{what}, {name} of {len(eager)}: {of(eager) * 1e3:.3f} ms eagerly, {of(compiled) * 1e3:.3f} ms compiled")


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n", 1)[0])
    for name, default in [("steps", 50), ("layers", 4), ("width", 64), ("heads", 4), ("context", 32), ("batch", 4), ("rows", 50)]:
        parser.add_argument(f"--{name}", type=int, default=default)
    parser.add_argument("--device", default="graft")
    options = parser.parse_args()
    train(options)
    ask(options)


if __name__ == "__main__":
    main()
