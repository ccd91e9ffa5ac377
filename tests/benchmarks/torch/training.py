"""Training steps on a Graft device against PyTorch's kernels: training.py [--device D] [--peer D] [--turns N] [--only NAME]

The models are those of docs/examples/torch, the digits CNN (batch 256, channels 32 and 64) and the character GPT (4
layers, width 256, context 128, batch 16), a ResNet-18 (32 images of 64 x 64), an encoder like BERT's (6 layers, width 256,
batch 16 x 128) and a language model of two LSTM layers (batch 32 x 64); `--only` takes some of them. Each runs eagerly and
under torch.compile, with PyTorch's Inductor where the peer is. Each side is a process of its own with two threads; they
take turns, and wait while the others work. Printed: medians and their ratio, how long the host's thread takes to submit a
step, the first step, launches and host-device transfers of a step, the peak of memory above parameters and optimizer,
the time of kernels outside of products, attention and convolutions, and the five ops that cost most, each with its share
when every op is waited for.
"""

import argparse
import collections
import json
import os
import statistics
import subprocess
import sys
import time

from training_models import MODELS, STEPS, step_of

WANTED = 2.0
TRANSFERS = 1
# In names of ops; a layer of an RNN is a product a step, with what stands between them in its kernel.
PRODUCTS = ("mm", "addmm", "bmm", "baddbmm", "attention", "convolution", "rnn")
PROFILED = 15  # steps, of which the least of each kernel counts: what else runs on the machine disturbs few of them


# --- one side ---


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
    """Of one step: seconds of each op that is waited for, and transfers between host and device."""
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

    with Watch() as watch:
        for _ in range(steps):
            step().item()
    return {name: value / steps for name, value in watch.seconds.items()}, watch.transfers / steps


def is_product(kernel):
    """A kernel's record is named "kernel (op)"; one of a graph's own has its groups' names, such as `multiply`, and `pack`,
    which lays out an operand for it."""
    op = kernel.partition("(")[2].rstrip(")") or kernel
    named = any(word in PRODUCTS for word in op.replace("::", "_").replace(".", "_").split("_"))
    return named or "multiply" in kernel or kernel == "pack"


def outside(step, device):
    """Milliseconds of a step's kernels outside of products, and within; None where PyTorch records no other device."""
    from torch.profiler import ProfilerActivity, profile

    times = collections.defaultdict(list)
    for _ in range(PROFILED):
        with profile(activities=[ProfilerActivity.PrivateUse1]) as records:
            step()
            synchronize(device)
        for record in records.key_averages():
            times[record.key].append(record.self_device_time_total / 1000)
    sums = {True: 0.0, False: 0.0}
    for kernel, each in times.items():
        sums[is_product(kernel)] += min(each)
    return (sums[False], sums[True]) if times else None


def peak(step, device, kept):
    """Bytes above parameters and the optimizer's state; None where nobody counts."""
    import torch

    if device == "cpu":
        return None
    module = torch.get_device_module(device)
    synchronize(device)
    module.reset_peak_memory_stats()
    step().item()
    return module.max_memory_allocated() - kept()


def timed(step, device, steps):
    """(seconds until all is submitted, seconds until the loss is there) of each step."""
    seconds = []
    for _ in range(steps):
        start = time.perf_counter()
        loss = step()
        submitted = time.perf_counter() - start
        loss.item()
        synchronize(device)
        seconds.append((submitted, time.perf_counter() - start))
    return seconds


def side(model, device, compiled):
    """Answers each line of the standard input: "time" with the seconds of the steps, "watch" with what they consist of."""
    import torch

    if device.startswith("graft"):
        import torch_graft  # noqa: F401  beside a CUDA device PyTorch does not load it by itself
    torch.set_num_threads(2)
    step, kept = step_of(model, device, compiled)
    start = time.perf_counter()
    step().item()
    first, steps = time.perf_counter() - start, STEPS[model]
    for _ in range(2):
        step().item()  # programs are built
    for line in sys.stdin:
        if line.strip() == "time":
            answer = timed(step, device, steps)
        elif line.strip() == "watch":
            answer = watched(step, device, steps)
        else:
            before = launches(device) if device.startswith("graft") else 0
            step().item()
            count = launches(device) - before if device.startswith("graft") else None
            ours = device.startswith("graft")
            answer = {"first": first, "launches": count, "peak": peak(step, device, kept),
                      "kernels": outside(step, device) if ours else None}
        print(json.dumps(answer), flush=True)


# --- all ---


class Process:
    def __init__(self, model, device, way):
        command = [sys.executable, __file__, "--side", model, "--device", device, "--way", way]
        # Where a Graft device is, autograd takes it for the only accelerator: a peer runs without.
        environment = {**os.environ, "TORCH_DEVICE_BACKEND_AUTOLOAD": "0" if device in ("cpu", "cuda") else "1"}
        self.process = subprocess.Popen(command, env=environment, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        self.said = f"{way} on {device}"

    def ask(self, what):
        try:
            self.process.stdin.write(what + "\n")
            self.process.stdin.flush()
            answer = self.process.stdout.readline()
        except BrokenPipeError:
            answer = ""
        if not answer:
            sys.exit(f"training.py: the side {self.said} ended; what it said stands above")
        return json.loads(answer)

    def end(self):
        self.process.stdin.close()
        self.process.wait()


def tell(way, seconds, facts, first):
    submitted, whole = (1e3 * statistics.median(each) for each in zip(*seconds, strict=True))
    line = f"    {way:22}{whole:9.2f} ms, submitted after {submitted:8.2f} ms; the first step {facts['first']:5.1f} s"
    if first:
        line += f"; ratio to the first {whole / first:.2f}"
    if facts["launches"] is not None:
        line += f"; {facts['launches']:g} launches"
    if facts["peak"] is not None:
        line += f"; peak {facts['peak'] / 2**20:.1f} MiB above parameters and optimizer"
    if facts["kernels"]:
        line += "; kernels {:.2f} ms outside of products, {:.2f} ms within".format(*facts["kernels"])
    print(line, flush=True)
    return whole


def compare(model, options):
    """Whether a step makes no more transfers than it may."""
    sides = {(device, way): Process(model, device, way) for device in (options.device, options.peer) for way in options.ways}
    seconds = collections.defaultdict(list)
    for _ in range(options.turns):
        for key, process in sides.items():
            seconds[key] += process.ask("time")
    facts = {key: process.ask("facts") for key, process in sides.items()}
    eager = sides.get((options.device, "eager"))
    ops, transfers = eager.ask("watch") if eager else ({}, 0)
    for process in sides.values():
        process.end()
    print(f"{model}: {transfers:g} transfers a step (wanted at most {TRANSFERS}); ratio wanted at most {WANTED}")
    first = None
    for device, way in sides:
        whole = tell(f"{device}, {way}", seconds[device, way], facts[device, way], first)
        first = first or whole
    for name, value in collections.Counter(ops).most_common(5):
        print(f"        {name:56}{1e3 * value:8.2f} ms {100 * value / sum(ops.values()):5.1f} %", flush=True)
    return transfers <= TRANSFERS


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n", 1)[0])
    parser.add_argument("--device", default="graft")
    parser.add_argument("--peer", default="cpu")
    parser.add_argument("--turns", type=int, default=5)
    parser.add_argument("--only", choices=MODELS, action="append")
    parser.add_argument("--ways", nargs="+", choices=("eager", "compiled"), default=("eager", "compiled"))
    parser.add_argument("--side", choices=MODELS)
    parser.add_argument("--way", choices=("eager", "compiled"), default="eager")
    options = parser.parse_args()
    if options.side:
        return side(options.side, options.device, options.way == "compiled")
    return not all([compare(model, options) for model in options.only or MODELS])


if __name__ == "__main__":
    sys.exit(main())
