"""What a device reaches at most: bytes a second of a copy, and operations a second of a loop of multiply-adds in f32."""

import subprocess
import sys
import time
from pathlib import Path

import torch

RUNS = 9
CUDA_FMA = """
extern "C" __global__ void fma_loop(float *out, const float *numbers) {
  float a = numbers[0], b = numbers[1];
  float x[16];
  for (int i = 0; i < 16; i++) x[i] = threadIdx.x + i;
  for (int n = 0; n < 4096; n++)
    for (int i = 0; i < 16; i++) x[i] = fmaf(x[i], a, b);
  float sum = 0;
  for (int i = 0; i < 16; i++) sum += x[i];
  out[blockIdx.x * blockDim.x + threadIdx.x] = sum;
}
"""


def best(call, synchronize, calls):
    call()
    synchronize()
    seconds = []
    for _ in range(RUNS):
        start = time.perf_counter()
        for _ in range(calls):
            call()
        synchronize()
        seconds.append((time.perf_counter() - start) / calls)
    return min(seconds)


def copy(device, synchronize, elements):
    source, target = torch.ones(elements, device=device), torch.ones(elements, device=device)
    return 8 * elements / best(lambda: target.copy_(source), synchronize, 3)


def cuda_fma(device):
    blocks, threads = 16 * torch.cuda.get_device_properties(device).multi_processor_count, 256
    kernel = torch.cuda._compile_kernel(CUDA_FMA, "fma_loop")
    arguments = torch.empty(blocks * threads, device=device), torch.tensor([0.999, 1e-3], device=device)
    seconds = best(lambda: kernel((blocks, 1, 1), (threads, 1, 1), arguments), torch.cuda.synchronize, 3)
    return 2 * 16 * 4096 * blocks * threads / seconds


def fma(device, name, program):
    """0 where it cannot be measured."""
    try:
        if device.type == "cuda":
            return cuda_fma(device)
        if not Path(program).exists():
            return 0.0
        command = [program, "cpu"] if device.type == "cpu" else [program, "opencl", name]
        return float(subprocess.run(command, check=True, capture_output=True, text=True).stdout)
    except Exception as problem:  # no compiler, no such function in this PyTorch: the figures stand without it
        print(f"ops: multiply-adds are not measured: {problem}", file=sys.stderr)
        return 0.0
