"""Two processes, a case on each in turn: their results compared, medians taken."""

import contextlib
import json
import math
import os
import select
import statistics
import subprocess
import sys
import time
from dataclasses import dataclass

ROUNDS = 7
LEAST_ROUNDS = 3
MAX_CALLS = 20000
CASE_SECONDS = 4.0  # at most, where a call is not longer
RUN_SECONDS = 0.02  # of calls up to one synchronize
MAKE_SECONDS, LEAST_MAKE_SECONDS = 60.0, 10.0  # the most that a case may take to be made: kernels are compiled
# Before each run on a CPU: the other side's threads spin for a while before they sleep, and would take the cores.
PAUSE = {"cpu": 0.02}
EPSILON = {"torch.float64": 2.0**-52, "torch.float32": 2.0**-23, "torch.bfloat16": 2.0**-7, "torch.float16": 2.0**-10,
           "torch.complex64": 2.0**-23, "torch.complex128": 2.0**-52}  # fmt: skip


class Ended(Exception):
    pass


class Process:
    """One side. It is begun again where it ended, or was ended because it took too long."""

    def __init__(self, script, device):
        self.command = [sys.executable, str(script), "--side", device]
        # Where a Graft device is, autograd takes it for the only accelerator: a peer runs without.
        peer = device.split(":")[0] in ("cpu", "cuda")
        self.environment = {**os.environ, "TORCH_DEVICE_BACKEND_AUTOLOAD": "0" if peer else "1"}
        if not peer:
            self.environment["GRAFT_TORCH_AUTOLOAD"] = "1"
        self.process = None

    def ask(self, what, seconds=MAKE_SECONDS, **arguments):
        self.send(what, **arguments)
        return self.answer(seconds)

    def send(self, what, **arguments):
        if not self.process:
            self.process = subprocess.Popen(
                self.command, env=self.environment, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
            )
        with contextlib.suppress(BrokenPipeError):  # then there is no answer
            self.process.stdin.write(json.dumps({"do": what, **arguments}) + "\n")
            self.process.stdin.flush()

    def answer(self, seconds):
        if not select.select([self.process.stdout], [], [], seconds)[0]:
            self.end()
            raise Ended(f"takes more than {seconds:.3g} s")
        answer = self.process.stdout.readline()
        if not answer:
            raise Ended(f"ended the process (status {self.end()})")
        answer = json.loads(answer)
        if "problem" in answer:
            raise Ended(answer["problem"])
        return answer

    def end(self):
        process, self.process = self.process, None
        if not process:
            return None
        with contextlib.suppress(BrokenPipeError):
            process.stdin.close()
        try:
            return process.wait(2)
        except subprocess.TimeoutExpired:
            process.kill()
            return process.wait()


# --- results ---


def precision(samples):
    """The epsilon of the least precise floating result."""
    return max([EPSILON.get(sample["dtype"], 0.0) for sample in samples], default=0.0)


def differs(ours, theirs, tolerance):
    """What is wrong with a result, or None. A wrong answer must not be timed, and more is not asked: conformance judges
    numbers. Half of the digits of the least precise result must agree, measured by the norm."""
    for part in ("dtype", "shape"):
        if ours[part] != theirs[part]:
            return f"{part} {ours[part]} instead of {theirs[part]}"
    values = list(zip(ours["values"], theirs["values"]))
    values.append((ours["whole"], theirs["whole"]))
    for group in (values[:-1], values[-1:]):
        if any(math.isfinite(a) != math.isfinite(b) for a, b in group):
            return "one is finite and the other is not"
        finite = [(a, b) for a, b in group if math.isfinite(b)]
        error = math.sqrt(math.fsum((a - b) ** 2 for a, b in finite))
        norm = math.sqrt(math.fsum(b * b for _, b in finite))
        if error > tolerance * norm:
            return f"off by {error / norm if norm else error:.2g} of the norm"
    return None


def judged(check, ours, theirs):
    """The first difference between the results of two sides, or None."""
    if len(ours) != len(theirs):
        return f"{len(ours)} results instead of {len(theirs)}"
    tolerance = math.sqrt(precision(theirs))
    for place, pair in enumerate(zip(ours, theirs)):
        if check == "none":
            fixed = [{**sample, "values": [], "whole": 0.0} for sample in pair]
        elif check in ("all", str(place)):
            fixed = pair
        else:
            continue
        problem = differs(*fixed, tolerance)
        if problem:
            return f"result {place}: {problem}"
    return None


# --- time ---


@dataclass
class Sides:
    device: Process
    peer: Process
    pause: float

    def items(self):
        return {"device": self.device, "peer": self.peer}.items()

    def end(self):
        for _, process in self.items():
            process.end()


def calls_of_a_run(process, mode):
    """How many calls take RUN_SECONDS. What stalls a single call, such as another process, must not make runs short."""
    best = min(process.ask("time", mode=mode, count=1)["seconds"] for _ in range(2))
    count = 1
    while True:
        wanted = max(1, min(MAX_CALLS, int(RUN_SECONDS / max(best, 1e-9))))
        if wanted <= 2 * count:
            return wanted
        count = min(wanted, 16 * count)
        best = min(best, process.ask("time", mode=mode, count=count)["seconds"])


def alternating(sides, mode, seconds):
    """Medians and the least of both over runs in turn, and how many runs."""
    counts, times = {}, {"device": [], "peer": []}
    for side, process in sides.items():
        time.sleep(sides.pause)
        counts[side] = calls_of_a_run(process, mode)
    start = time.monotonic()
    for done in range(ROUNDS):
        spent = time.monotonic() - start
        if done and (spent > 2 * seconds or done >= LEAST_ROUNDS and spent > seconds):
            break
        for side, process in sides.items():
            time.sleep(sides.pause)
            times[side].append(process.ask("time", mode=mode, count=counts[side])["seconds"])
    figures = {side: {"median": statistics.median(column), "least": min(column)} for side, column in times.items()}
    return figures, len(times["peer"])


def made_on(sides, case, seconds):
    """What both answer who make a case at once, and the problems of those that don't."""
    answers, problems = {}, []
    for _, process in sides.items():
        process.send("make", case=case.key)
    for side, process in sides.items():
        try:
            answers[side] = process.answer(seconds)
        except Ended as problem:
            problems.append(f"{side}: {problem}")
    return answers, problems


def measured(case, sides, seconds):
    """A case's record: figures, or the problem that there are none for."""
    record = {"case": case.key, "op": case.op, "family": case.family, "group": case.group, "flops": case.flops}
    made, problems = made_on(sides, case, min(MAKE_SECONDS, max(LEAST_MAKE_SECONDS, 20 * seconds)))
    if problems:
        return {**record, "problem": "; ".join(problems)}
    record |= {"bytes": made["device"]["bytes"], "first": {side: answer["first"] for side, answer in made.items()}}
    samples = {side: answer["samples"] for side, answer in made.items()}
    modes = [mode for mode in ("new", "kept") if all(mode in of for of in samples.values())]
    for mode in modes:
        problem = judged(case.check, samples["device"][mode], samples["peer"][mode])
        if problem:
            return {**record, "problem": f"results differ, {mode}: {problem}"}
    times = {}
    try:
        for mode in modes:
            times[mode], record["rounds"] = alternating(sides, mode, seconds / len(modes))
    except Ended as problem:
        return {**record, "problem": str(problem)}
    return {**record, "times": times}
