"""Models of transformers in tiny configurations on a Graft device: tiny_transformers.py [NAME...] [--report FILE] ...

Each model (tiny_models.py) that the CPU trains in a second a step makes two steps (forward, loss, backward, SGD) from
the same weights on the device under GRAFT_FALLBACK=error. Loss and gradients of both are held against the same in f64,
as tests/torch/training.py does it; where they seem wrong, the CPU runs again with weights that are a rounding off, which
tells how ill-conditioned the results are, and ReLUs are looked at whose arguments may have either sign (sides.py).

    equal      trained, and as close to the f64 results as the CPU's are, four times over
    wrong      trained, and not so
    refused    an op of it is not served; trained again with fallback allowed, which tells what is missing
    failed     an exception that the CPU does not raise
    crashed    the worker died or hung
    left out   not on the CPU either: no tiny configuration, no batch that it takes, too slow, a loss without an end

NAME is a glob over class names and types. With --report each answer is a line of JSON there, and what has one is not
run again. --cold: each model in a process of its own that finds no compiled program; --warm: one that finds what
`graft warm` has compiled before, and nothing else. Exit status: 0 nothing wrong, failed or crashed, 1 something, 3
nothing ran.
"""

import argparse
import collections
import copy
import fnmatch
import json
import os
import random
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from functools import partial
from pathlib import Path

HERE = Path(__file__).resolve().parent
sys.path[:0] = [str(HERE.parents[1] / "torch"), str(HERE)]  # "training" is the one of the tests
import pool  # noqa: E402
import tiny_models  # noqa: E402

OUTCOMES = ("equal", "wrong", "refused", "failed", "crashed", "left out")
SLOW = 1.0  # s a step on the CPU
LARGE = 20_000_000  # parameters
NEARBY = range(1, 5)  # more runs of the CPU, where results seem wrong
SPREAD = 0.05  # of what is added to all weights: many are zero or one at first, and tell nothing of their gradients
OFFLINE = {"HF_HUB_OFFLINE": "1", "HF_HUB_DISABLE_TELEMETRY": "1", "TRANSFORMERS_VERBOSITY": "error"}


class LeftOut(Exception):
    pass


# --- one model ---


def leaves(value):
    from torch.utils._pytree import tree_leaves

    return tree_leaves(value)


def moved(batch, device, dtype):
    import torch
    from torch.utils._pytree import tree_map

    def move(value):
        if not isinstance(value, torch.Tensor):
            return value
        return value.to(device, dtype) if value.is_floating_point() else value.to(device)

    return tree_map(move, batch)


def host_random():
    """Numbers drawn where the CPU draws them, so that both sides have the same ones."""
    import torch
    from torch.overrides import TorchFunctionMode

    made = {torch.rand, torch.randn, torch.randint, torch.randperm, torch.normal, torch.bernoulli, torch.multinomial,
            torch.rand_like, torch.randn_like, torch.randint_like, torch.poisson}
    written = {getattr(torch.Tensor, name + "_") for name in
               ("normal", "uniform", "bernoulli", "exponential", "random", "log_normal", "cauchy", "geometric")}

    class HostRandom(TorchFunctionMode):
        def __torch_function__(self, function, types, args=(), kwargs=None):
            kwargs = kwargs or {}
            if function not in made and function not in written:
                return function(*args, **kwargs)
            tensors = [leaf for leaf in leaves((args, kwargs)) if isinstance(leaf, torch.Tensor)]
            device = kwargs.get("device") or (tensors[0].device if tensors else "cpu")
            there = {**moved(kwargs, "cpu", None), **({"device": "cpu"} if "device" in kwargs else {})}
            result = function(*(moved(arg, "cpu", None) for arg in args), **there)
            return args[0].copy_(result) if function in written else result.to(device)

    return HostRandom()


def loss_of(output):
    """The model's own loss; else a number that all its results move."""
    import torch

    loss = getattr(output, "loss", None)
    if isinstance(loss, torch.Tensor) and loss.requires_grad:
        return loss.sum()
    results = [leaf for leaf in leaves(output) if isinstance(leaf, torch.Tensor) and leaf.requires_grad]
    if not results:
        raise LeftOut("no result of it can be differentiated")
    total = 0.0
    for result in results:
        signs = torch.cos(torch.arange(result.numel(), dtype=torch.float64)).view(result.shape)
        total = total + (result * signs.to(result.dtype).to(result.device)).real.mean()
    return total


def seeded():
    import torch

    torch.manual_seed(1)
    random.seed(1)
    if "numpy" in sys.modules:
        sys.modules["numpy"].random.seed(1)


def two_steps(model, batch, device, dtype):
    """(results as f64 on the CPU, seconds of both steps, those of processors' time)"""
    import torch

    model, batch = copy.deepcopy(model).to(device, dtype), moved(batch, device, dtype)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
    results, seconds, used = {}, [], []
    for number in ("", "second "):
        seeded()
        start, start_used = time.perf_counter(), time.process_time()
        loss = loss_of(model(**batch))
        loss.backward()
        value = loss.item()
        seconds.append(time.perf_counter() - start)
        used.append(time.process_time() - start_used)
        results[number + "loss"] = torch.tensor(value, dtype=torch.float64)
        for name, p in model.named_parameters():
            if p.grad is not None:
                results[f"{number}gradient of {name}"] = p.grad.detach().cpu().to(torch.float64)
        start, start_used = time.perf_counter(), time.process_time()
        torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        optimizer.zero_grad()
        next(model.parameters()).flatten()[:1].cpu()
        seconds[-1] += time.perf_counter() - start
        used[-1] += time.process_time() - start_used
    return results, seconds, used


def is_finite(results):
    return all(bool(value.isfinite().all()) for value in results.values())


def trained(model):
    """(batch, results, seconds, used) of the first batch that the CPU takes."""
    import torch

    first = None
    for batch in tiny_models.batches(torch, model):
        for _ in range(3):
            try:
                results, seconds, used = two_steps(model, batch, "cpu", torch.float32)
            except Exception as error:
                first = first or error
                batch = tiny_models.with_places(torch, error, model, batch)
                if batch is None:
                    break
                continue
            if is_finite(results):
                return batch, results, seconds, used
            first = first or LeftOut("its loss has no end")
            break
    raise LeftOut(f"{type(first).__name__}: {first}"[:200] if first else "no batch for its arguments")


def made(model_type, name, plan):
    import torch
    import transformers

    kind = getattr(transformers, name)
    config = tiny_models.configuration(model_type, plan, kind.config_class)
    with torch.device("meta"):
        count = sum(p.numel() for p in kind(copy.deepcopy(config)).parameters())
    if count > LARGE:
        raise LeftOut(f"{count / 1e6:.0f} million parameters")
    torch.manual_seed(0)
    model = kind(config).float().train()
    with torch.no_grad():
        for p in model.parameters():
            if p.is_floating_point():
                p.add_(torch.randn_like(p) * SPREAD)
    for part in model.modules():  # those whose probability is no field of the configuration
        if isinstance(part, torch.nn.modules.dropout._DropoutNd):
            part.p = 0.0
    return model, count


def prepared(model_type, name):
    """(model, parameters, batch, results, seconds, used) by the first plan that serves."""
    reasons = {}
    for plan in tiny_models.PLANS:
        try:
            model, count = made(model_type, name, plan)
            return model, count, *trained(model)
        except Exception as error:
            text = str(error) if isinstance(error, LeftOut) else f"{type(error).__name__}: {error}"
            reasons[" ".join(text.split())[:120]] = True
    raise LeftOut("; else ".join(reasons))


def nearby(model, batch, seed):
    """The CPU's results where each weight moves by a rounding."""
    import torch

    near = copy.deepcopy(model)
    generator = torch.Generator().manual_seed(seed)
    with torch.no_grad():
        for p in near.parameters():
            p.mul_(1 + torch.randn(p.shape, generator=generator).to(p.dtype) * torch.finfo(torch.float32).eps)
    return two_steps(near, batch, "cpu", torch.float32)[0]


def reference(model, batch, theirs):
    """(exact results, the CPU's): where the model can't be had in f64, what its own results move when the weights do so
    by a rounding."""
    import torch
    from training import Widened

    try:
        with Widened():
            exact, _, _ = two_steps(model, batch, "cpu", torch.float64)
        if exact.keys() == theirs.keys() and is_finite(exact):
            return exact, theirs
    except Exception:
        pass
    return theirs, nearby(model, batch, 0)


def judge(ours, cpu, exact):
    """What is wrong: the first result, and the worst. Each may be SLACK times as far off as the worst of the CPU's runs
    is, or as the middle one of its results, which may be lucky with one."""
    from training import error

    if ours.keys() != exact.keys():
        return ["other parameters have gradients: " + ", ".join(sorted(ours.keys() ^ exact.keys())[:3])]
    return judge_errors(error(ours, exact), [error(theirs, exact) for theirs in cpu])


def judge_errors(ours, runs):
    from training import FLOOR, SLACK

    off = {name: max(run[name] for run in runs) for name in runs[0]}
    middle = statistics.median(off.values())
    found = [(e / max(off[name], middle, FLOOR), name) for name, e in ours.items()]
    worse = sorted(((ratio, name) for ratio, name in found if not ratio <= SLACK), reverse=True)
    first = [name for _, name in found if name in {name for _, name in worse}][:1]
    return [f"first: {name}" for name in first] + [f"{name} ({ratio:.1f} times)" for ratio, name in worse[:3]]


def judge_by_sides(model, batch, device):
    """As judge(), where ReLUs have arguments that may have either sign (sides.py); None where that can't be told."""
    import sides
    import torch
    from training import Widened

    def ours():
        with host_random():
            return two_steps(model, batch, device, torch.float32)[0]

    def exact():
        with Widened():
            return two_steps(model, batch, "cpu", torch.float64)[0]

    def theirs():
        return two_steps(model, batch, "cpu", torch.float32)[0]

    try:
        errors = sides.errors(ours, [theirs, *(partial(nearby, model, batch, seed) for seed in NEARBY)], exact)
    except Exception:  # the model can't be had in f64
        return None
    return errors and judge_errors(*errors)


def examined(model_type, name, device):
    import torch
    import torch_graft

    row = {"type": model_type, "model": name}
    try:
        model, row["parameters"], batch, theirs, row["cpu"], row["cpu_used"] = prepared(model_type, name)
        row["batch"] = list(batch)
        if row["cpu"][1] > SLOW:
            raise LeftOut(f"{row['cpu'][1]:.1f} s a step")
    except LeftOut as error:
        return row | {"outcome": "left out", "note": str(error)}
    exact, theirs = reference(model, batch, theirs)
    torch_graft.reset_fallbacks()
    before = torch_graft.statistics(device)
    try:
        with host_random():
            ours, row["device"], row["device_used"] = two_steps(model, batch, device, torch.float32)
    except Exception as error:
        text = f"{type(error).__name__}: {error}"[:400]
        refused = "GRAFT_FALLBACK=error" in text or "does not serve" in text or "nothing serves" in text
        return row | {"outcome": "refused" if refused else "failed", "note": text}
    after = torch_graft.statistics(device)
    row["programs"] = after.programs_built + after.programs_loaded - before.programs_built - before.programs_loaded
    row["missing"] = sorted({entry.op for entry in torch_graft.fallbacks()})
    worse = judge(ours, [theirs], exact)
    if worse:  # one run does not tell how far roundings move results that depend on differences of nearly equal numbers
        worse = judge(ours, [theirs, *(nearby(model, batch, seed) for seed in NEARBY)], exact)
    by_sides = judge_by_sides(model, batch, device) if worse else None
    if by_sides is not None:
        worse = by_sides
    return row | {"outcome": "wrong" if worse else "equal", "note": "; ".join(worse)}


def worker(device):
    """Reads lines of a type and a class; answers each with a line of JSON."""
    import warnings

    import torch

    warnings.simplefilter("ignore")
    torch.set_num_threads(1)
    answers, sys.stdout = sys.stdout, sys.stderr
    for line in sys.stdin:
        print(json.dumps(examined(*line.split(), device)), file=answers, flush=True)


# --- all of them ---


def caches(folder):
    """What lets a process find the programs in a folder, and no others: Graft's and those that PoCL keeps itself."""
    return {"GRAFT_CACHE_DIR": f"{folder}/graft", "POCL_CACHE_DIR": f"{folder}/pocl"}


def new_caches():
    folder = tempfile.TemporaryDirectory()
    for made in caches(folder.name).values():
        os.mkdir(made)
    return folder


def warmed():
    """Caches that hold what `graft warm` compiles."""
    folder = new_caches()
    environment = {**os.environ, **caches(folder.name)}
    subprocess.run([str(HERE.parents[2] / "run"), "graft", "warm"], env=environment, check=True, stdout=sys.stderr)
    return folder


class Fleet:
    """A worker that forbids fallback, and one that allows it for what was refused."""

    def __init__(self, options):
        self.options, self.live = options, {}

    def ask(self, policy, task):
        folder = new_caches() if self.options.cold or self.options.warm else None
        if self.options.warm:
            shutil.copytree(self.options.warmed.name, folder.name, dirs_exist_ok=True)
        if folder:
            self.close()
        if policy not in self.live or not self.live[policy].alive():
            cache = caches(folder.name) if folder else {}
            environment = {**os.environ, **OFFLINE, **cache, "GRAFT_FALLBACK": policy, "GRAFT_LOG": "error"}
            command = [sys.executable, __file__, "--worker", "--device", self.options.device]
            self.live[policy] = pool.Worker(command, environment)
        answer = self.live[policy].ask(" ".join(task), self.options.limit)
        if folder:
            self.close()
            folder.cleanup()
        if isinstance(answer, str):
            return {"type": task[0], "model": task[1], "outcome": "crashed", "note": answer}
        return answer

    def alive(self):
        return True

    def close(self):
        for live in self.live.values():
            if live.alive():
                live.close()
        self.live = {}


def ask(fleet, task):
    row = fleet.ask("error", task)
    if row["outcome"] == "refused":
        again = fleet.ask("allow", task)
        row["missing"] = again.get("missing", [])
        if again["outcome"] not in ("equal", "refused"):
            row |= {"outcome": again["outcome"], "note": f"{row['note']}; with fallback: {again['note']}"}
    return row


def read(path):
    if not path or not os.path.exists(path):
        return []
    return [json.loads(line) for line in open(path)]


def run(options):
    rows = read(options.report)
    if options.again:
        rows = [row for row in rows if row["outcome"] not in options.again.split(",")]
        with open(options.report, "w") as report:
            report.writelines(json.dumps(row) + "\n" for row in rows)
    known = {row["model"] for row in rows}

    def wanted(task):
        return not options.names or any(fnmatch.fnmatchcase(part, glob) for part in task for glob in options.names)

    tasks = [task for task in tiny_models.chosen(options.every) if wanted(task)]
    chosen = {name for _, name in tasks}
    index, of = (int(part) for part in options.shard.split("/"))
    tasks = [task for task in tasks[index - 1::of] if task[1] not in known]
    rows = [row for row in rows if row["model"] in chosen]
    with open(options.report or os.devnull, "a") as report:
        for row in pool.answers(tasks, options.jobs, lambda: Fleet(options), ask):
            rows.append(row)
            print(json.dumps(row), file=report, flush=True)
            print(f"{row['outcome']:9} {row['model']}" + f"  {row['note']}"[:160] * bool(row["note"]), flush=True)
    return rows


def ratio(rows, step, of=""):
    return sum(row["device" + of][step] for row in rows) / sum(row["cpu" + of][step] for row in rows)


def table(rows):
    counts = collections.Counter(row["outcome"] for row in rows)
    for outcome in OUTCOMES:
        print(f"{outcome:10}{counts[outcome]:6}")
    missing = collections.Counter(op for row in rows if row["outcome"] == "refused" for op in row.get("missing", []))
    for op, count in missing.most_common():
        print(f"missing: {op} ({count})")
    timed = [row for row in rows if row["outcome"] in ("equal", "wrong")]
    if timed:
        for step, text in enumerate(("first", "second")):
            middle = statistics.median(row["device"][step] / row["cpu"][step] for row in timed)
            print(f"{text} step: {ratio(timed, step):.1f} times the CPU's time over all, {middle:.1f} in the middle; "
                  f"processors' time: {ratio(timed, step, '_used'):.1f} over all")
        print(f"programs: {sum(row['programs'] for row in timed) / len(timed):.1f} a model")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("names", nargs="*", metavar="NAME", help="globs over class names and types")
    parser.add_argument("--every", action="store_true", help="every class; else one a type of model")
    parser.add_argument("--device", default="graft:0")
    parser.add_argument("--jobs", type=int, default=1)
    parser.add_argument("--limit", type=float, default=180, help="seconds a model")
    parser.add_argument("--shard", default="1/1", metavar="I/N")
    parser.add_argument("--report", metavar="FILE", help="lines of JSON; goes on where it stopped")
    parser.add_argument("--again", metavar="OUTCOMES", help="run what the report has with these outcomes once more")
    own = parser.add_mutually_exclusive_group()
    own.add_argument("--cold", action="store_true", help="a process and an empty cache for each model")
    own.add_argument("--warm", action="store_true", help="a process and what `graft warm` compiles for each model")
    parser.add_argument("--worker", action="store_true", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.worker:
        return worker(options.device)
    try:
        import transformers  # noqa: F401
    except ImportError:
        sys.exit("tiny_transformers.py: wants transformers, which is not installed")
    options.warmed = warmed() if options.warm else None
    rows = run(options)
    table(rows)
    if not rows:
        return 3
    return int(any(row["outcome"] in ("wrong", "failed", "crashed") for row in rows))


if __name__ == "__main__":
    sys.exit(main())
