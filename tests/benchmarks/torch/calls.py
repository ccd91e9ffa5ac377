"""The cost of a small call from Python, in microseconds: calls.py DEVICE; prints JSON.

DEVICE is "yardstick" (kernels that only allocate their output, from yardstick.cpp), a device of torch_graft, or "cpu".
"""
import json
import statistics
import sys
import time

import torch
import torch.nn.functional as F

RUNS = 31
CALLS = 2000


def yardstick():
    from pathlib import Path

    from torch.utils.cpp_extension import load

    load("graft_yardstick", [str(Path(__file__).with_name("yardstick.cpp"))], extra_cflags=["-std=c++20", "-O2"])
    return "privateuseone:0"


def calls(device):
    a, b, out = (torch.empty(16, device=device) for _ in range(3))
    image, weight = torch.empty(1, 1, 3, 3, device=device), torch.empty(1, 1, 1, 1, device=device)
    yield "add(a, b)", lambda: torch.add(a, b)
    yield "add(a, 1)", lambda: torch.add(a, 1)
    yield "add(a, b, out=o)", lambda: torch.add(a, b, out=out)
    yield "conv2d", lambda: F.conv2d(image, weight)


def microseconds(call, synchronize):
    def once():
        start = time.perf_counter()
        for _ in range(CALLS):
            call()
        return (time.perf_counter() - start) / CALLS * 1e6

    once()
    times = []
    for _ in range(RUNS):
        times.append(once())
        synchronize()
    return statistics.median(times)


def main():
    torch.set_num_threads(1)
    name = sys.argv[1]
    device = yardstick() if name == "yardstick" else name
    synchronize = (lambda: None) if name in ("yardstick", "cpu") else torch.accelerator.synchronize
    with torch.no_grad():
        print(json.dumps({text: microseconds(call, synchronize) for text, call in calls(device)}))


main()
