"""Ops of a backend against PyTorch's own CPU kernels: pocl_vs_torch.py CALL_TIMER [BACKEND]

Both have two threads. Runs alternate, each over several calls, and the medians are compared: once with results that are
there already on both sides, once with a new result for each call, as eager PyTorch does by default.
"""
import statistics
import subprocess
import sys
import time

import torch

RUNS = 15
SECONDS = 0.15  # of one run
PAUSE = 0.05  # before each run: the other side's threads spin for a while before they sleep, and would take the cores
aten = torch.ops.aten

N = 1 << 24
ROWS, COLUMNS = 4096, 1024


def uniform(*shape):
    return torch.rand(shape) * 4 - 2


def pointwise():
    a, b, out = uniform(N), uniform(N), torch.empty(N)
    big = f"f32[{N}]"
    yield "add", f"aten::add.Tensor {big} {big}", 0.9, lambda: torch.add(a, b, out=out), lambda: torch.add(a, b)
    yield "exp", f"aten::exp {big}", 0.9, lambda: torch.exp(a, out=out), lambda: torch.exp(a)
    yield "gelu", f"aten::gelu {big}", 0.9, lambda: aten.gelu.out(a, out=out), lambda: aten.gelu(a)
    one = torch.empty(1)
    yield ("sum", f"aten::sum.dim_IntList {big} [0] true", 0.9, lambda: torch.sum(a, [0], True, out=one),
           lambda: torch.sum(a, [0], True))


def rows():
    x, out = uniform(ROWS, COLUMNS), torch.empty(ROWS, COLUMNS)
    shape = f"f32[{ROWS},{COLUMNS}]"
    yield ("softmax", f"aten::_softmax {shape} 1 false", 0.8, lambda: aten._softmax.out(x, 1, False, out=out),
           lambda: torch.softmax(x, 1))
    weight, bias = uniform(COLUMNS), uniform(COLUMNS)
    mean, rstd = torch.empty(ROWS, 1), torch.empty(ROWS, 1)
    yield ("layer_norm", f"aten::native_layer_norm {shape} [{COLUMNS}] f32[{COLUMNS}] f32[{COLUMNS}] 1e-5", 0.8,
           lambda: aten.native_layer_norm.out(x, [COLUMNS], weight, bias, 1e-5, out0=out, out1=mean, out2=rstd),
           lambda: torch.native_layer_norm(x, [COLUMNS], weight, bias, 1e-5))


class Timer:
    def __init__(self, program, backend):
        self.process = subprocess.Popen([program, backend], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)

    def ask(self, command):
        self.process.stdin.write(command + "\n")
        self.process.stdin.flush()
        answer = self.process.stdout.readline()
        if not answer:
            raise RuntimeError(f"call_timer ended at: {command}")
        return answer.strip()


def torch_seconds(call, count):
    start = time.perf_counter()
    for _ in range(count):
        call()
    return (time.perf_counter() - start) / count


def compare(timer, mode, call):
    """Medians of both over alternating runs."""
    torch_seconds(call, 2)
    count = max(1, int(SECONDS / torch_seconds(call, 2)))
    float(timer.ask(f"{mode} {count}"))
    theirs, ours = [], []
    for _ in range(RUNS):
        time.sleep(PAUSE)
        theirs.append(torch_seconds(call, count))
        time.sleep(PAUSE)
        ours.append(float(timer.ask(f"{mode} {count}")))
    return statistics.median(theirs), statistics.median(ours)


def main():
    torch.set_num_threads(2)
    program, backend = sys.argv[1], sys.argv[2] if len(sys.argv) > 2 else "opencl"
    print(f"torch {torch.__version__}, {torch.get_num_threads()} threads, {torch.backends.cpu.get_cpu_capability()}; "
          f"medians of {RUNS} alternating runs; ratio = torch's time / Graft's")
    print(f"{'':12}{'results kept':^32}{'a new result a call':^32}")
    print(f"{'':12}{'torch':>10}{'Graft':>10}{'ratio':>8}    {'torch':>10}{'Graft':>10}{'ratio':>8}   wanted")
    for group in (pointwise, rows):
        for name, text, wanted, kept, fresh in group():
            timer = Timer(program, backend)
            line = f"{name:12}"
            try:
                timer.ask("make " + text)
                for mode, call in (("kept", kept), ("fresh", fresh)):
                    theirs, ours = compare(timer, mode, call)
                    line += f"{theirs * 1e3:7.2f} ms{ours * 1e3:7.2f} ms{theirs / ours:8.2f}    "
                print(line + f"{wanted:5.2f}", flush=True)
            except RuntimeError as error:
                print(line + str(error), flush=True)
            timer.process.stdin.close()
            timer.process.wait()


main()
