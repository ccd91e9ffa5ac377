"""Training steps on a Graft device against PyTorch's CPU: training.py [--device D] [--peer D] [--turns N]

The models are those of docs/examples/torch: the digits CNN (batch 256, channels 32 and 64) and the character GPT (4
layers, width 256, context 128, batch 16). Each side is a process of its own with two threads; they take turns, and wait
while the other one works. Printed: medians and their ratio, launches and host-device transfers of a step, and the five
ops that cost most, each with its share when every op is waited for.
"""

import argparse
import collections
import json
import os
import statistics
import subprocess
import sys
import time
from pathlib import Path

EXAMPLES = Path(__file__).resolve().parents[3] / "docs" / "examples" / "torch"
STEPS = {"cnn": 20, "gpt": 4}  # of a turn
WANTED = 2.0
TRANSFERS = 1


# --- one side ---


def cnn(device):
    import digits_cnn
    import torch
    from torch.nn import functional as F

    torch.manual_seed(1)
    model = digits_cnn.network((32, 64)).to(device)
    (images, labels), _ = digits_cnn.digits()
    images, labels = images[:256].to(device), labels[:256].to(device)
    optimizer = torch.optim.AdamW(model.parameters(), lr=2e-3, fused=True)

    def step():
        loss = F.cross_entropy(model(images), labels)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        return loss

    return step


def gpt(device):
    import char_gpt
    import torch
    from torch.nn import functional as F

    ids, letters = char_gpt.corpus()
    torch.manual_seed(1)
    model = char_gpt.GPT(len(letters), 4, 256, 4, 128).to(device)
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3, fused=True)
    window = ids[: 16 * 129].view(16, 129).to(device)

    def step():
        loss = F.cross_entropy(model(window[:, :-1]).flatten(0, 1), window[:, 1:].flatten())
        optimizer.zero_grad()
        loss.backward()
        torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        return loss

    return step


def synchronize(device):
    import torch

    if device != "cpu":
        torch.get_device_module(device).synchronize()


def launches(device):
    """Kernels enqueued so far; 0 where nobody counts them."""
    import torch_graft

    counts = torch_graft.statistics(device)
    return counts.launches if counts else 0


def watched(step, device, steps):
    """Of one step: seconds of each op that is waited for, transfers between host and device, and launches."""
    import torch
    from torch.utils._python_dispatch import TorchDispatchMode
    from torch.utils._pytree import tree_leaves

    class Watch(TorchDispatchMode):
        def __init__(self):
            super().__init__()
            self.seconds, self.transfers = collections.Counter(), 0

        def __torch_dispatch__(self, function, types, args=(), kwargs=None):
            synchronize(device)
            start = time.perf_counter()
            result = function(*args, **(kwargs or {}))
            synchronize(device)
            self.seconds[function.overloadpacket.__name__] += time.perf_counter() - start
            tensors = [leaf for leaf in tree_leaves((args, kwargs, result)) if isinstance(leaf, torch.Tensor)]
            reads = function is torch.ops.aten._local_scalar_dense.default and tensors[0].device.type != "cpu"
            # numbers travel with the call
            self.transfers += reads or len({t.device.type for t in tensors if t.dim() or t is result}) > 1
            return result

    before = launches(device)
    with Watch() as watch:
        for _ in range(steps):
            step().item()
    seconds = {name: value / steps for name, value in watch.seconds.items()}
    return seconds, watch.transfers / steps, (launches(device) - before) / steps


def side(model, device):
    """Answers each line of the standard input: "time" with the seconds of the steps, "watch" with what they consist of."""
    sys.path.insert(0, str(EXAMPLES))
    import torch

    torch.set_num_threads(2)
    step, steps = globals()[model](device), STEPS[model]
    for _ in range(3):
        step().item()  # programs are built
    for line in sys.stdin:
        if line.strip() == "watch":
            print(json.dumps(watched(step, device, steps)), flush=True)
            continue
        seconds = []
        for _ in range(steps):
            start = time.perf_counter()
            step().item()
            seconds.append(time.perf_counter() - start)
        print(json.dumps(seconds), flush=True)


# --- both ---


class Process:
    def __init__(self, model, device):
        command = [sys.executable, __file__, "--side", model, "--device", device]
        # Where a Graft device is, autograd takes it for the only accelerator: a peer runs without.
        environment = {**os.environ, "TORCH_DEVICE_BACKEND_AUTOLOAD": "0" if device in ("cpu", "cuda") else "1"}
        self.process = subprocess.Popen(command, env=environment, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)

    def ask(self, what):
        self.process.stdin.write(what + "\n")
        self.process.stdin.flush()
        answer = self.process.stdout.readline()
        if not answer:
            sys.exit("training.py: a side ended; what it said stands above")
        return json.loads(answer)

    def end(self):
        self.process.stdin.close()
        self.process.wait()


def compare(model, options):
    sides = {device: Process(model, device) for device in (options.device, options.peer)}
    seconds = collections.defaultdict(list)
    for _ in range(options.turns):
        for device, process in sides.items():
            seconds[device] += process.ask("time")
    ops, transfers, kernels = sides[options.device].ask("watch")
    for process in sides.values():
        process.end()
    ours, theirs = (statistics.median(seconds[device]) for device in sides)
    print(f"{model}: {1e3 * ours:.1f} ms a step on {options.device}, {1e3 * theirs:.1f} ms on {options.peer}; "
          f"ratio {ours / theirs:.2f} (wanted at most {WANTED}); "
          f"{kernels:g} launches and {transfers:g} transfers a step (wanted at most {TRANSFERS} transfers)")
    whole = sum(ops.values())
    for name, value in collections.Counter(ops).most_common(5):
        print(f"    {name:60}{1e3 * value:8.2f} ms {100 * value / whole:5.1f} %")
    return transfers <= TRANSFERS


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n", 1)[0])
    parser.add_argument("--device", default="graft")
    parser.add_argument("--peer", default="cpu")
    parser.add_argument("--turns", type=int, default=5)
    parser.add_argument("--side", choices=STEPS)
    options = parser.parse_args()
    if options.side:
        return side(options.side, options.device)
    return not all([compare(model, options) for model in STEPS])


if __name__ == "__main__":
    sys.exit(main())
