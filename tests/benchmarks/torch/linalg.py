"""Linear algebra and Fourier transforms on graft:0 against PyTorch's CPU: linalg.py [NAME...]

Milliseconds of a call, medians of alternating runs; the ratio is the CPU's time / ours, and beside it the one that is
wanted.
"""

import os
import statistics
import sys
import time

os.environ.setdefault("GRAFT_FALLBACK", "error")

import torch

ROUNDS = 7
ROUND_SECONDS = 0.05
PAUSE = 0.02  # before each run: the other side's threads spin for a while before they sleep

SMALL, LARGE = (64, 32, 32), (512, 512)


def definite(a):
    return a @ a.mT + a.shape[-1] * torch.eye(a.shape[-1])


# name -> (what makes the inputs of a matrix, the call, the ratios wanted at SMALL and LARGE)
MATRICES = {
    "solve": (lambda a: (definite(a), a), torch.linalg.solve, (0.5, 0.5)),
    "qr": (lambda a: (a,), torch.linalg.qr, (0.5, 0.5)),
    "cholesky": (lambda a: (definite(a),), torch.linalg.cholesky, (0.5, 0.5)),
    "eigh": (lambda a: (a + a.mT,), torch.linalg.eigh, (0.5, 0.2)),
    "svd": (lambda a: (a,), torch.linalg.svd, (0.5, 0.2)),
}
SIGNALS = {"fft 2^20": ((1 << 20,), 0.5), "fft 64 of 1000": ((64, 1000), 0.5)}


def calls():
    torch.manual_seed(0)
    for name, (make, call, wanted) in MATRICES.items():
        for shape, ratio in zip((SMALL, LARGE), wanted):
            yield f"{name} {'x'.join(map(str, shape))}", call, make(torch.randn(shape)), ratio
    for name, (shape, ratio) in SIGNALS.items():
        yield name, torch.fft.fft, (torch.randn(shape, dtype=torch.complex64),), ratio


def timed(call, inputs, count, synchronize):
    time.sleep(PAUSE)
    start = time.perf_counter()
    for _ in range(count):
        call(*inputs)
    synchronize()
    return (time.perf_counter() - start) / count


def medians(call, sides):
    """Milliseconds on each side in turn; a side is the inputs and what waits for a call's results."""
    for inputs, wait in sides:
        timed(call, inputs, 1, wait)  # the first builds its kernels
    counts = [max(1, int(ROUND_SECONDS / timed(call, inputs, 1, wait))) for inputs, wait in sides]
    times = [[timed(call, inputs, count, wait) for (inputs, wait), count in zip(sides, counts)] for _ in range(ROUNDS)]
    return [statistics.median(column) * 1e3 for column in zip(*times)]


def main():
    import torch_graft  # noqa: F401  # brings the device

    torch.set_num_threads(2)
    names = sys.argv[1:]
    print(f"{'':20}{'graft, ms':>12}{'CPU, ms':>12}{'ratio':>9}{'wanted':>9}")
    for name, call, inputs, wanted in calls():
        if names and not any(name.startswith(one) for one in names):
            continue
        ours = tuple(x.to("graft:0") for x in inputs)
        here, there = medians(call, [(ours, torch.accelerator.synchronize), (inputs, lambda: None)])
        print(f"{name:20}{here:12.3f}{there:12.3f}{there / here:9.2f}{wanted:9.2f}", flush=True)


if __name__ == "__main__":
    main()
