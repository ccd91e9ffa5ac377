"""A process that runs cases on one device: each line of its standard input asks one thing, in JSON, and is answered by one
line. It imports the case's device and no other."""

import gc
import json
import sys
import time
import traceback
import warnings

import torch

from . import cases, peak

SAMPLE = 4096  # elements of a result that are compared
THREADS = 2


def synchronizer(device):
    if device.type == "cpu":
        return lambda: None
    return torch.get_device_module(device).synchronize


def sample_of(tensor):
    """What is compared of a result: its kind, some of its elements, and a figure that all of them move."""
    flat = tensor.detach().cpu().resolve_conj().resolve_neg().contiguous().view(-1)
    if flat.is_complex():
        flat = torch.view_as_real(flat).view(-1)
    elements = flat.numel()
    places = torch.linspace(0, max(0, elements - 1), min(elements, SAMPLE), dtype=torch.float64).long()
    norm = torch.linalg.vector_norm(flat, dtype=torch.float64) if flat.is_floating_point() else flat.sum(dtype=torch.float64)
    return {"dtype": str(tensor.dtype), "shape": list(tensor.shape), "whole": float(norm),
            "values": flat[places].double().tolist()}  # fmt: skip


def bytes_of(tensors):
    return float(sum(tensor.numel() * tensor.element_size() for tensor in tensors))


class Side:
    def __init__(self, device):
        self.device = torch.device(device)
        self.synchronize = synchronizer(self.device)
        self.made = None

    def hello(self):
        name = "CPU"
        if self.device.type == "cuda":
            name = torch.cuda.get_device_name(self.device)
        elif self.device.type != "cpu":
            import torch_graft

            row = torch_graft.devices()[self.device.index or 0]
            name = f"{torch.get_device_module(self.device).get_device_name(self.device)} ({row.plugin})"
        return {"name": name, "torch": torch.__version__, "type": self.device.type}

    def peaks(self, program, elements):
        return {
            "copy": peak.copy(self.device, self.synchronize, elements),
            "fma": peak.fma(self.device, self.hello()["name"], program),
        }

    def drop(self):
        self.made = None
        gc.collect()
        if self.device.type != "cpu":
            torch.get_device_module(self.device).empty_cache()
        return {}

    def make(self, case):
        """Makes a case's tensors and its results for the first time; answers what it took, and samples of the results."""
        self.drop()
        with torch.no_grad():
            start = time.perf_counter()
            self.made = cases.every()[case].make(self.device)
            results = cases.tensors_of([self.made.new()])
            self.synchronize()
            seconds = time.perf_counter() - start
            moved = bytes_of([*self.made.inputs, *results])
            samples = {"new": [sample_of(tensor) for tensor in results]}
            if self.made.kept:
                samples["kept"] = [sample_of(tensor) for tensor in cases.tensors_of([self.made.kept()])]
        return {"first": seconds, "bytes": moved, "samples": samples}

    def time(self, mode, count):
        """Seconds of a call: so many of them up to one synchronize."""
        call = getattr(self.made, mode)
        with torch.no_grad():
            start = time.perf_counter()
            for _ in range(count):
                call()
            self.synchronize()
            return {"seconds": (time.perf_counter() - start) / count}


def serve(device):
    warnings.simplefilter("ignore")  # of what is in beta
    torch.set_num_threads(THREADS)
    if device.startswith("cuda"):
        # Both sides compute in f32 what is f32.
        torch.backends.cuda.matmul.allow_tf32 = torch.backends.cudnn.allow_tf32 = False
    # What libraries print must not stand between the answers.
    answers, sys.stdout = sys.stdout, sys.stderr
    side = Side(device)
    for line in sys.stdin:
        question = json.loads(line)
        try:
            answer = getattr(side, question.pop("do"))(**question)
        except Exception as error:  # whatever it is, the case has no figures and the next one is asked for
            said = str(error).strip() or str(traceback.extract_tb(error.__traceback__)[-1])
            answer = {"problem": f"{type(error).__name__}: {said.splitlines()[0]}"}
        answers.write(json.dumps(answer) + "\n")
        answers.flush()
