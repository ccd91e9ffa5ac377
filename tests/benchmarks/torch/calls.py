"""The cost of a small call from Python: calls.py [--instructions] PLUGIN.

Three processes in turn, medians over all turns: the bridge over PLUGIN (tests/plugins/null.so does nothing), hand-written
kernels that only allocate their output (yardstick.cpp), and PyTorch's CPU. One process is calls.py --one DEVICE.

--instructions counts what the processor does for a call of the bridge (valgrind; four minutes), the same every time: what
two builds can be compared by where the machine's speed wanders.
"""
import json
import os
import statistics
import subprocess
import sys
import time
import types

import torch
import torch.nn.functional as F

TURNS = 5
RUNS = 11  # of a turn
CALLS = 2000


def yardstick():
    from pathlib import Path

    from torch.utils.cpp_extension import load

    torch._register_device_module("privateuseone", types.ModuleType("privateuseone"))
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


def one(name):
    torch.set_num_threads(1)
    device, synchronize = name, lambda: None
    if name == "yardstick":
        device = yardstick()
    elif name != "cpu":
        import torch_graft

        device, synchronize = f"graft:{torch_graft.load(name)}", torch.accelerator.synchronize
    with torch.no_grad():
        print(json.dumps({text: microseconds(call, synchronize) for text, call in calls(device)}))


def turn(name):
    # PyTorch has room for one package of this kind in a process: the yardstick is another.
    environment = {**os.environ, "TORCH_DEVICE_BACKEND_AUTOLOAD": "1" if name.endswith(".so") else "0"}
    out = subprocess.run([sys.executable, __file__, "--one", name], check=True, env=environment, stdout=subprocess.PIPE)
    return json.loads(out.stdout.splitlines()[-1])


def some(name, text, count):
    """Only the warm-up of all calls, and so many of one."""
    import torch_graft

    torch.set_num_threads(1)
    with torch.no_grad():
        known = dict(calls(f"graft:{torch_graft.load(name)}"))
        for call in known.values():
            for _ in range(100):
                call()
        for _ in range(int(count)):
            known[text]()


def instructions(name):
    count = 20000
    one_way = {"PYTHONHASHSEED": "0", "OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1", "ATEN_CPU_CAPABILITY": "default"}

    def executed(text, count):
        command = ["valgrind", "--tool=cachegrind", "--cache-sim=no", "--cachegrind-out-file=/dev/null", sys.executable,
                   __file__, "--some", name, text, str(count)]  # fmt: skip
        said = subprocess.run(command, check=True, env={**os.environ, **one_way}, stderr=subprocess.PIPE, text=True).stderr
        line = next(line for line in said.splitlines() if "refs:" in line)
        return int(line.rsplit(" ", 1)[1].replace(",", ""))

    texts = [text for text, _ in calls("cpu")]
    before = executed(texts[0], 0)
    for text in texts:
        print(f"{text:18}{(executed(text, count) - before) / count:9.0f} instructions", flush=True)


def main():
    sides = {"bridge": os.path.abspath(sys.argv[1]), "yardstick": "yardstick", "cpu": "cpu"}
    times = {}
    for _ in range(TURNS):
        for side, name in sides.items():
            for text, value in turn(name).items():
                times.setdefault(text, {}).setdefault(side, []).append(value)
    print(f"{'us a call':18}{'bridge':>9}{'yardstick':>11}{'above it':>10}{'torch CPU':>11}{'ratio':>8}   wanted: 0.8 above, 1.3")
    for text, sides_of in times.items():
        bridge, least, cpu = (statistics.median(sides_of[side]) for side in sides)
        print(f"{text:18}{bridge:9.2f}{least:11.2f}{bridge - least:10.2f}{cpu:11.2f}{bridge / cpu:8.2f}")


if sys.argv[1] == "--one":
    one(sys.argv[2])
elif sys.argv[1] == "--some":
    some(*sys.argv[2:])
elif sys.argv[1] == "--instructions":
    instructions(os.path.abspath(sys.argv[2]))
else:
    main()
