"""PyTorch's own op database on a Graft device: op_db.py [--op GLOB] [--dtype LIST] [--jobs N] [--report FILE] ...

Each sample of each op runs on the CPU and on the device: forward, in place and out variants, and for floating dtypes
backward. Worker processes run the ops, each op within a limit; one that crashes or hangs costs its op alone.

    right      values, dtype and shape are those of the CPU (random ops: dtype and shape)
    wrong      they are not
    error      the device raised where the CPU did not, or the worker died
    refused    a clear NotImplementedError: what GRAFT_FALLBACK=error forbids, a dtype that Graft has not; under "in
               part" where the op is one of Graft's, and it is this call that the device does not serve
    fallback   right, but part of the work left the device

A value is right when it is as close to the result in twice the precision as PyTorch's CPU kernels are, four times over,
or within torch.testing's tolerance of the CPU's; an index also when it is that of twice the precision.

Exit status: 0 nothing wrong and no error, 1 something, 3 nothing ran.
"""

import argparse
import collections
import fnmatch
import json
import os
import sys
import time

import pool

DTYPES = {"f32": "float32", "f16": "float16", "bf16": "bfloat16", "i64": "int64", "bool": "bool", "c64": "complex64"}
OUTCOMES = ("right", "fallback", "wrong", "error", "refused")
# Their values are whatever was in memory.
UNINITIALISED = {"empty", "empty_like", "empty_permuted", "empty_strided", "new_empty", "new_empty_strided"}
# On any device they want their tensor arguments on the CPU.
ARGUMENTS_ON_CPU = {"tensor_split"}
# Among equal values the order is open, unless a stable one is asked for: op -> which argument after the input is dim.
ORDER_IS_OPEN = {"sort": 0, "argsort": 0, "topk": 1, "kthvalue": 1, "mode": 0}
# Factors whose signs (phases) are open: of these, what the sample itself says is compared.
SIGNS_ARE_OPEN = {"linalg.eigh", "linalg.svd", "svd", "linalg.eig", "linalg.eigvals"}
# And so is the order of the eigenvalues of these.
EIGENVALUES_IN_ANY_ORDER = {"linalg.eig", "linalg.eigvals"}
MAX_SAMPLES = 24  # of one op and dtype, evenly spread over those there are


# --- worker ---


def tree_map(function, value):
    from torch.utils._pytree import tree_map as over

    return over(function, value)


def leaves(value):
    from torch.utils._pytree import tree_leaves

    return tree_leaves(value)


class Side:
    """One sample on one device and in one dtype: inputs of its own, so that in place variants harm nobody."""

    def __init__(self, sample, device, wide=False, grad=False, arguments_on_cpu=False):
        import torch

        up = {torch.float32: torch.float64, torch.float16: torch.float64, torch.bfloat16: torch.float64,
              torch.complex64: torch.complex128}

        def move(value, device=device):
            if isinstance(value, torch.dtype) and wide:
                return up.get(value, value)
            if isinstance(value, torch.device) or (isinstance(value, str) and value.startswith("cpu")):
                return torch.device(device)
            if not isinstance(value, torch.Tensor):
                return value
            wants = value.requires_grad
            dtype = up.get(value.dtype, value.dtype) if wide else value.dtype
            value = value.detach().to(device, dtype, copy=True)
            return value.requires_grad_(wants and grad)

        where = "cpu" if arguments_on_cpu else device
        self.input = tree_map(move, sample.input)
        self.args, self.kwargs = (tree_map(lambda value: move(value, where), part) for part in (sample.args, sample.kwargs))
        self.determined = sample.output_process_fn_grad  # what of the results is determined, such as factors but for signs

    def tensors(self):
        import torch

        parts = leaves((self.input, self.args, self.kwargs))
        return [part for part in parts if isinstance(part, torch.Tensor) and part.requires_grad]


def outputs(value):
    import torch

    return [leaf for leaf in leaves(value) if isinstance(leaf, torch.Tensor)]


def by_eigenvalue(determined):
    """What a sample says is determined, its eigenvalues, and columns of vectors, in an order that depends on the values."""

    def ordered(results):
        values, *vectors = outputs(determined(results))
        key = values.detach().cpu()
        order = (key.real + 0.37 * key.imag).argsort(-1).to(values.device)
        columns = order.unsqueeze(-2)
        return [values.gather(-1, order), *(v.gather(-1, columns.expand(v.shape)) for v in vectors)]

    return ordered


def run_forward(function, side):
    return outputs(function(side.input, *side.args, **side.kwargs))


def run_determined(function, side):
    return outputs(side.determined(function(side.input, *side.args, **side.kwargs)))


def run_backward(function, side):
    import torch

    results = [out for out in run_determined(function, side) if out.requires_grad]
    inputs = side.tensors()
    if not results or not inputs:
        return []
    cotangents = []
    for out in results:
        generator = torch.Generator().manual_seed(7)
        values = torch.randn(out.shape, generator=generator, dtype=torch.float64)
        cotangents.append(values.to(out.dtype).to(out.device))
    grads = torch.autograd.grad(results, inputs, cotangents, allow_unused=True)
    return [torch.zeros(()) if grad is None else grad for grad in grads]


def run_out(function, side):
    import torch

    expected = function(side.input, *side.args, **side.kwargs)
    single = isinstance(expected, torch.Tensor)
    outs = [torch.empty_like(out).fill_(0) for out in outputs(expected)]
    function(side.input, *side.args, **side.kwargs, out=outs[0] if single else tuple(outs))
    return outs


def run_out_determined(function, side):
    return outputs(side.determined(tuple(run_out(function, side))))


def distance(ours, theirs):
    """The largest error, infinite where one is finite and the other is not or is another infinity."""
    import torch

    if ours.numel() == 0:
        return 0.0
    wide = torch.complex128 if ours.is_complex() or theirs.is_complex() else torch.float64
    ours, theirs = ours.to(wide), theirs.to(wide)
    same = (ours == theirs) | (ours.isnan() & theirs.isnan())
    gap = torch.where(same, 0.0, (ours - theirs).abs())
    return torch.where(gap.isnan(), torch.inf, gap).max().item()


def compare(ours, cpu, wide):
    """Why a result is wrong; None when it is right."""
    import torch

    if len(ours) != len(cpu):
        return f"{len(ours)} results instead of {len(cpu)}"
    for i, (mine, theirs) in enumerate(zip(ours, cpu)):
        if (mine.dtype, mine.shape) != (theirs.dtype, theirs.shape):
            return f"result {i}: {mine.dtype}{tuple(mine.shape)} instead of {theirs.dtype}{tuple(theirs.shape)}"
        mine = mine.detach().cpu().resolve_conj().resolve_neg()
        theirs = theirs.detach().resolve_conj().resolve_neg()
        try:
            torch.testing.assert_close(mine, theirs, equal_nan=True, check_stride=False)
        except AssertionError as error:
            exact = wide[i] if wide and len(wide) == len(cpu) else None
            counted = not mine.dtype.is_floating_point and not mine.dtype.is_complex
            if exact is not None and (torch.equal(mine, exact) if counted else
                                      distance(mine, exact) <= 4 * distance(theirs, exact)):
                continue
            return f"result {i}: " + " ".join(str(error).split())[:300]
    return None


def is_random(function, sample):
    """Whether the CPU draws numbers, and gives other results for other ones."""
    import torch

    torch.manual_seed(0)
    before = torch.get_rng_state()
    results = [run_forward(function, Side(sample, "cpu"))]
    given = any(isinstance(leaf, torch.Generator) for leaf in leaves((sample.args, sample.kwargs)))
    if not given and torch.equal(torch.get_rng_state(), before):
        return False
    for seed in range(1, 20):
        torch.manual_seed(seed)
        results.append(run_forward(function, Side(sample, "cpu")))
    return any(a.shape == b.shape and not torch.equal(a.isnan() | (a == b), torch.ones_like(a, dtype=torch.bool))
               for other in results[1:] for a, b in zip(results[0], other))


def decomposed(function, side):
    """The results by PyTorch's decompositions. They follow the device where its kernels for the CPU have shapes or dtypes
    of their own, as the statistics of normalizations do."""
    from torch._decomp import decomposition_table
    from torch.utils._python_dispatch import TorchDispatchMode

    class Decompose(TorchDispatchMode):
        def __torch_dispatch__(self, func, types, args=(), kwargs=None):
            return decomposition_table.get(func, func)(*args, **(kwargs or {}))

    with Decompose():
        return [result.cpu() for result in run_forward(function, side)]


def kinds_differ(ours, cpu):
    return len(ours) == len(cpu) and any((a.shape, a.dtype) != (b.shape, b.dtype) for a, b in zip(ours, cpu))


def picked(results, sample, position):
    """Results whose last one are indices: instead of these what they pick, and whether they pick nothing twice."""
    import torch

    dim = sample.kwargs.get("dim", sample.args[position] if len(sample.args) > position else -1)
    *others, index = [result.detach().cpu() for result in results]
    if index.dim() < sample.input.dim():
        index = index.unsqueeze(dim)
    once = index.sort(dim).values.diff(dim=dim).ne(0).all() if index.dim() else torch.tensor(True)
    return [*others, sample.input.detach().gather(dim, index), once]


def refusal(error):
    """Whether an exception says clearly that Graft does not do this, and which part of it: "refused" or "in part"."""
    text = str(error)
    if "does not serve" in text or "nothing serves" in text:
        return "in part"
    clear = isinstance(error, (NotImplementedError, TypeError)) and text.startswith("graft: ")
    return "refused" if clear or "GRAFT_FALLBACK=error" in text else None


def shapes_only(results):
    import torch

    return [torch.zeros(out.shape, dtype=out.dtype) for out in results]


class Runner:
    def __init__(self, device):
        import torch
        import torch_graft

        self.torch, self.graft, self.device = torch, torch_graft, device
        self.info, self.arguments_on_cpu = None, False

    def attempt(self, run, function, sample, grad, shape_only):
        """(outcome, text) of one variant of a sample; None where the CPU itself refuses it."""
        try:
            cpu = run(function, Side(sample, "cpu", grad=grad))
        except Exception:
            return None
        try:
            wide = run(function, Side(sample, "cpu", wide=True, grad=grad))
        except Exception:
            wide = None
        self.graft.reset_fallbacks()
        try:
            ours = run(function, self.side(sample, grad))
            self.torch.accelerator.synchronize()
            left = sorted({row.op for row in self.graft.fallbacks()})
            if shape_only:
                ours, cpu, wide = shapes_only(ours), shapes_only(cpu), None
            elif run is not run_backward and kinds_differ(ours, cpu):
                cpu, wide = decomposed(function, self.side(sample, grad)), None
            text = compare(ours, cpu, wide)
            if text and self.info.name in ORDER_IS_OPEN and run is not run_backward and not sample.kwargs.get("stable"):
                position = ORDER_IS_OPEN[self.info.name]
                text = compare(picked(ours, sample, position), picked(cpu, sample, position), None)
        except Exception as error:
            return refusal(error) or "error", f"{type(error).__name__}: {error}"[:300]
        if text:
            return "wrong", text
        return ("fallback", " ".join(left)) if left else ("right", "")

    def side(self, sample, grad):
        return Side(sample, self.device, grad=grad, arguments_on_cpu=self.arguments_on_cpu)

    def op(self, info, dtype):
        """Counts of outcomes by variant, and what went wrong first of each."""
        torch = self.torch
        grads = dtype.is_floating_point and dtype == torch.float32 and info.supports_autograd
        self.info, self.arguments_on_cpu = info, info.name in ARGUMENTS_ON_CPU
        samples = list(info.sample_inputs("cpu", dtype, requires_grad=grads))
        step = max(1, len(samples) // MAX_SAMPLES)
        counts, notes = collections.defaultdict(collections.Counter), {}
        for number, sample in enumerate(samples[::step]):
            function = info.op
            if info.name in EIGENVALUES_IN_ANY_ORDER:
                sample.output_process_fn_grad = by_eigenvalue(sample.output_process_fn_grad)
            shape_only = info.name in UNINITIALISED
            try:
                shape_only = shape_only or is_random(function, sample)
            except Exception:
                continue
            signs_are_open = info.name in SIGNS_ARE_OPEN
            variants = [("forward", run_determined if signs_are_open else run_forward, function, False)]
            if grads and not shape_only:
                variants.append(("backward", run_backward, function, True))
            if dtype == torch.float32 and not shape_only:
                if info.inplace_variant:
                    variants.append(("inplace", run_forward, info.inplace_variant, False))
                if info.supports_out:
                    variants.append(("out", run_out_determined if signs_are_open else run_out, function, False))
            for name, run, call, grad in variants:
                answer = self.attempt(run, call, sample, grad, shape_only)
                if not answer:
                    continue
                counts[name]["refused" if answer[0] == "in part" else answer[0]] += 1
                if answer[1]:
                    notes.setdefault(f"{name} {answer[0]}", f"sample {number * step}: {answer[1]}")
        return {name: dict(counter) for name, counter in counts.items()}, notes


def full_name(info):
    return f"{info.name}.{info.variant_test_name}" if info.variant_test_name else info.name


def worker(device):
    """Reads "op dtype" lines; answers each with a line of JSON."""
    import warnings

    import torch

    warnings.simplefilter("ignore")
    torch.set_num_threads(1)
    from torch.testing._internal.common_methods_invocations import op_db

    infos = {full_name(info): info for info in op_db}
    # Ops that draw numbers are wrapped to seed first: without that, that they are random can be seen.
    for module in [module for name, module in sys.modules.items() if name.startswith("torch.testing._internal")]:
        if hasattr(module, "wrapper_set_seed"):
            module.wrapper_set_seed = lambda op, *args, **kwargs: op(*args, **kwargs)
    runner = Runner(device)
    for line in sys.stdin:
        name, short = line.split()
        dtype = getattr(torch, DTYPES[short])
        torch.manual_seed(0)
        try:
            counts, notes = runner.op(infos[name], dtype)
        except Exception as error:
            counts, notes = {"forward": {"error": 1}}, {"samples": f"{type(error).__name__}: {error}"[:300]}
        print(json.dumps({"op": name, "dtype": short, "counts": counts, "notes": notes}), flush=True)


# --- parent ---


def ask(worker, task, limit):
    name, short = task
    answer = worker.ask(f"{name} {short}", limit)
    if isinstance(answer, str):
        return {"op": name, "dtype": short, "counts": {"forward": {"error": 1}}, "notes": {"died": answer}}
    return answer


def choose(options):
    from torch.testing._internal.common_methods_invocations import op_db
    import torch

    for short in options.dtype.split(","):
        dtype = getattr(torch, DTYPES[short])
        for info in op_db:
            name = full_name(info)
            chosen = any(fnmatch.fnmatchcase(name, glob) for glob in options.op.split(","))
            if chosen and dtype in info.supported_dtypes("cpu"):
                yield name, short


def run_all(options):
    chosen = sorted(set(choose(options)))
    index, of = (int(part) for part in options.shard.split("/"))
    chosen = chosen[index - 1::of]
    command = [sys.executable, __file__, "--worker", "--device", options.device]
    answers = pool.answers(chosen, options.jobs, lambda: pool.Worker(command),
                           lambda worker, task: ask(worker, task, options.limit))
    rows, start = [], time.time()
    for number, row in enumerate(answers):
        rows.append(row)
        if sys.stderr.isatty() or number % 50 == 49:
            print(f"\r{number + 1} of {len(chosen)} ops, {time.time() - start:.0f} s", end="\n" if not sys.stderr.isatty()
                  else "", file=sys.stderr, flush=True)
    return sorted(rows, key=lambda row: (row["dtype"], row["op"]))


def totals(rows):
    table = collections.defaultdict(collections.Counter)
    for row in rows:
        for variant, counts in row["counts"].items():
            table[row["dtype"], variant].update(counts)
    return table


def summary(rows):
    lines = ["| dtype | variant | samples | " + " | ".join(OUTCOMES) + " | right or fallback |", "| --- " * 9 + "|"]
    for (short, variant), counts in sorted(totals(rows).items()):
        count = sum(counts.values())
        good = 100 * (counts["right"] + counts["fallback"]) / count
        cells = " | ".join(str(counts[outcome]) for outcome in OUTCOMES)
        lines.append(f"| {short} | {variant} | {count} | {cells} | {good:.2f} % |")
    return lines


def troubles(rows):
    for row in rows:
        for what, text in row["notes"].items():
            if not what.endswith(("fallback", "refused", "in part")):
                yield f"{row['op']} {row['dtype']} {what}: {text}"


def served(rows):
    """The entries of which the device does at least one sample itself."""
    return [row for row in rows if any(counts.get("right") for counts in row["counts"].values())]


def served_in_part(rows):
    for row in rows:
        for what, text in row["notes"].items():
            if what.endswith("in part"):
                yield f"{row['op']} {row['dtype']} {what}: {text}"


def shares(rows):
    """What the acceptance of a backend asks for."""
    counts = collections.Counter()
    for variant in totals(rows).values():
        counts.update(variant)
    total, own = sum(counts.values()), served(rows)
    done = counts["right"] + counts["fallback"]
    unsound = {line.split(" ", 1)[0] for line in [*troubles(own), *served_in_part(own)]}
    yield f"{done} of {total} samples are right ({100 * done / total:.2f} %), {counts['right']} of them on the device alone"
    yield (f"the device does samples of {len(own)} of {len(rows)} ops itself; {len(unsound)} of these have a sample that "
           "is wrong, fails or is refused by an op of Graft")


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n", 1)[0])
    parser.add_argument("--op", default="*", help="globs of op names, with commas between")
    parser.add_argument("--dtype", default="f32", help="with commas between: " + ", ".join(DTYPES))
    parser.add_argument("--device", default="graft:0")
    parser.add_argument("--jobs", type=int, default=os.cpu_count())
    parser.add_argument("--limit", type=float, default=120, help="seconds for one op and dtype")
    parser.add_argument("--shard", default="1/1", metavar="I/N")
    parser.add_argument("--report", help="a file for one line of JSON an op")
    parser.add_argument("--worker", action="store_true", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.worker:
        worker(options.device)
        return 0
    rows = run_all(options)
    if options.report:
        with open(options.report, "w") as file:
            file.writelines(json.dumps(row) + "\n" for row in rows)
    if not rows:
        return 3
    bad = list(troubles(rows))
    print("\n".join([*summary(rows), *shares(rows), *bad, *served_in_part(rows)]))
    return 1 if bad else 0


if __name__ == "__main__":
    sys.exit(main())
